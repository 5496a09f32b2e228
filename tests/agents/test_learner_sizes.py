"""At their defaults the networks are the paper's Table 2."""

import pytest
import torch
from tiny_learner import TINY, config_of
from torch import nn

from ccwm.agents.model_based import ModelBasedLearner
from ccwm.settings.agent import ActorCritic, Env, Model, Optimiser, Retrace, Train, Truncation


@pytest.fixture(scope="module")
def paper():
    """The defaults, for a task of six actions; built without its 7 million numbers."""
    with torch.device("meta"):
        return ModelBasedLearner(config_of({section: {} for section in TINY}), observation_shape=(64, 64, 3), actions=6)


def layers(module):
    """Every layer with weights as (kind, outputs, kernel)."""
    found = []
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            found.append(("dense", layer.out_features, None))
        elif isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            assert layer.stride == (2, 2)
            found.append(("conv", layer.out_channels, layer.kernel_size[0]))
    return found


def activations(module):
    return {type(layer) for layer in module.modules() if isinstance(layer, nn.ReLU | nn.ELU)}


def dense(*widths):
    return [("dense", width, None) for width in widths]


def test_the_defaults_are_the_layers_of_table_2(paper):
    model, actor_critic = paper.world_model, paper.actor_critic
    assert layers(model.encoder) == [("conv", 32 * 2**n, 4) for n in range(4)]
    first, *deconvolutions = layers(model.decoder)[1:]
    assert layers(model.decoder)[0] == ("dense", 1024, None)
    assert first == ("dense", 128 * 5 * 5, None)  # deconvolution 1: 128 filters of kernel 5 on one pixel
    assert deconvolutions == [("conv", 64, 5), ("conv", 32, 6), ("conv", 3, 6)]
    assert layers(model.reward) == dense(512, 512, 1)
    assert layers(actor_critic.critic) == dense(512, 512, 512, 1)
    assert layers(actor_critic.actor) == dense(512, 512, 512, 512, 12)  # two numbers for each of six actions
    assert layers(paper.retracing.reverse) == dense(256, 256, 6)
    assert activations(actor_critic.actor) == {nn.ELU}
    for part in (model.encoder, model.decoder, model.reward, actor_critic.critic, paper.retracing.reverse):
        assert activations(part) == {nn.ReLU}
    rssm = model.rssm
    assert (rssm.cell.hidden_size, rssm.stoch, rssm.prior_out.min_std) == (256, 32, 0.1)
    assert [layer.out_features for layer in (rssm.prior_hidden, rssm.posterior_hidden)] == [256, 256]
    assert [layer.out_features for layer in (rssm.prior_out, rssm.posterior_out)] == [64, 64]


def test_parameter_counts_by_hand(paper):
    def count(module):
        return sum(p.numel() for p in module.parameters())

    model, actor_critic, f = paper.world_model, paper.actor_critic, 256 + 32
    hidden = 512 * 512 + 512
    assert count(model.encoder) == 1_568 + 32_832 + 131_200 + 524_544  # 3·32·4² + 32, 32·64·4² + 64, …
    assert count(model.decoder) == (f * 1024 + 1024) + 3_276_928 + 204_864 + 73_760 + 3_459  # 1024·128·5² + 128, …
    assert count(model.reward) == (f * 512 + 512) + hidden + 513
    assert count(actor_critic.critic) == (f * 512 + 512) + 2 * hidden + 513
    assert count(actor_critic.actor) == (f * 512 + 512) + 3 * hidden + 513 * 12
    assert count(paper.retracing) == (2 * f * 256 + 256) + (256 * 256 + 256) + 257 * 6
    gru = 3 * 2 * (256 * 256 + 256)
    prior = (256 * 256 + 256) + 257 * 64
    posterior = (1024 + 256) * 256 + 256 + 257 * 64
    assert count(model.rssm) == (32 + 6 + 1) * 256 + gru + prior + posterior


def test_the_other_defaults_are_the_papers():
    model, retrace, actor_critic, train, rates = Model(), Retrace(), ActorCritic(), Train(), Optimiser()
    assert (model.free_nats, model.kl_dynamics, model.kl_representation) == (3.0, 1.0, 1.0)
    assert (retrace.weight, retrace.loss, retrace.horizon, retrace.samples) == (1.0, "bisimulation", 1, 1)
    assert (actor_critic.horizon, actor_critic.discount, actor_critic.return_lambda) == (15, 0.99, 0.95)
    assert (actor_critic.gradient, actor_critic.starts_per_window, actor_critic.exploration) == ("dynamics", None, 0.3)
    assert (actor_critic.init_std, actor_critic.min_std, actor_critic.mean_scale) == (5.0, 1e-4, 5.0)  # Dreamer's own
    assert model.init == "glorot"  # as TensorFlow begins
    assert (train.batch, train.length, train.updates, train.update_every) == (64, 50, 100, 1000)
    assert (train.evaluate_every, Env().action_repeat, Env().size) == (10_000, 2, 64)
    assert (rates.model_lr, rates.critic_lr, rates.actor_lr, rates.grad_clip) == (6e-4, 8e-5, 8e-5, 100.0)
    assert (Truncation().threshold, Truncation().window) == (0.10, 10)
    assert (train.pretrain, retrace.length) == (None, None)


def test_nothing_of_the_robust_backbone_is_on_by_default():
    model, actor_critic = Model(), ActorCritic()
    assert not any((model.symlog, model.layer_norm, model.zero_heads))
    assert not any((actor_critic.layer_norm, actor_critic.normalise_returns, actor_critic.slow_critic))
    assert (model.reward_head, actor_critic.critic_head) == ("gaussian", "gaussian")
    assert (model.activation, actor_critic.critic_activation, actor_critic.actor_activation) == ("relu", "relu", "elu")
