"""The networks are Dreamer's, and at their defaults the paper's Table 2."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ccwm.agents.learner import Learner
from ccwm.nets.actor import Actor
from ccwm.nets.conv import Decoder, Encoder, Upsample
from ccwm.nets.rssm import RSSM
from ccwm.settings.agent import ActorCritic, Env, Model, Optimiser, Retrace, Train, Truncation


@pytest.mark.parametrize("kernel", [5, 6])
@pytest.mark.parametrize("pixels", [1, 5, 14])
def test_upsample_is_a_transposed_convolution(kernel, pixels):
    fast, plain = Upsample(3, 2, kernel).double(), nn.ConvTranspose2d(3, 2, kernel, stride=2).double()
    plain.load_state_dict(fast.state_dict())
    image = torch.randn(2, 3, pixels, pixels, dtype=torch.float64)
    assert_close(fast(image), plain(image))
    for module in (fast, plain):
        module(image).square().sum().backward()
    assert_close([p.grad for p in fast.parameters()], [p.grad for p in plain.parameters()])


def test_the_decoders_first_layer_is_a_transposed_convolution_on_one_pixel():
    decoder = Decoder(feature=4, size=32, depth=2).double()
    nn.init.normal_(decoder.first_bias)
    kernel, _, channels = decoder.shape
    plain = nn.ConvTranspose2d(64, channels, kernel, stride=2).double()
    with torch.no_grad():
        plain.weight.copy_(decoder.first.weight.reshape(kernel, kernel, channels, 64).permute(3, 2, 0, 1))
        plain.bias.copy_(decoder.first_bias)
    feature = torch.randn(3, 4, dtype=torch.float64)
    wanted = decoder.layers(plain(decoder.dense(feature).reshape(3, 64, 1, 1)))
    assert_close(decoder(feature), wanted)


@pytest.mark.parametrize(("size", "embed"), [(32, 8 * 2 * 2), (64, 16 * 2 * 2)])
def test_pixels_become_an_embedding_and_a_feature_becomes_pixels(size, embed):
    encoder, decoder = Encoder(size=size, depth=2), Decoder(feature=5, size=size, depth=2)
    assert encoder.outputs == embed
    assert encoder(torch.zeros(4, 3, 3, size, size)).shape == (4, 3, embed)
    assert decoder(torch.zeros(4, 3, 5)).shape == (4, 3, 3, size, size)
    assert decoder(torch.zeros(7, 5)).shape == (7, 3, size, size)


def test_leading_axes_are_only_folded():
    encoder, decoder = Encoder(size=32, depth=2).double(), Decoder(feature=5, size=32, depth=2).double()
    image, feature = torch.randn(2, 3, 3, 32, 32).double(), torch.randn(2, 3, 5).double()
    assert_close(encoder(image)[1, 2], encoder(image[1, 2:3])[0])
    assert_close(decoder(feature)[1, 2], decoder(feature[1, 2:3])[0])


def test_a_step_of_the_rssm():
    rssm = RSSM(embed=4, actions=2, deter=6, stoch=3, hidden=5, min_std=0.1, activation="relu")
    state = rssm.initial(torch.zeros(2, 1))
    assert not torch.cat(list(state), -1).any()
    noise = torch.randn(2, 3)
    prior = rssm.predict(state, torch.ones(2, 2), noise)
    posterior = rssm.correct(state, torch.ones(2, 2), rssm.embed(torch.ones(2, 4)), noise)
    assert torch.equal(prior.deter, posterior.deter)  # the image corrects the Gaussian, not the GRU
    assert not torch.equal(prior.mean, posterior.mean)
    for part in (prior, posterior):
        assert_close(part.stoch, part.mean + part.std * noise)
    assert_close(rssm.prior(prior.deter).mean, prior.mean)
    for out in (rssm.prior_out, rssm.posterior_out):
        nn.init.zeros_(out.weight)
        nn.init.zeros_(out.bias)
    spread = torch.full((2, 3), math.log(2) + 0.1)  # softplus(0) = log 2, and the least spread on top
    assert_close(rssm.prior(prior.deter).std, spread)
    assert_close(rssm.posterior(prior.deter, torch.zeros(2, 5)).std, spread)


def test_an_untrained_actor_has_the_spread_that_was_asked_for():
    actor = Actor(feature=3, actions=2, units=4, layers=1, init_std=3.0, min_std=1e-4, mean_scale=2.0)
    nn.init.zeros_(actor.layers[-1].weight)
    nn.init.zeros_(actor.layers[-1].bias)
    assert_close(actor(torch.ones(1, 3)).std, torch.full((1, 2), 3.0001))
    nn.init.constant_(actor.layers[-1].bias, 2.0)
    mean = 2.0 * math.tanh(1.0)  # squashed into ± 2
    assert_close(actor(torch.ones(1, 3)).mean, torch.full((1, 2), mean))
    assert_close(actor.greedy(torch.ones(1, 3)), torch.full((1, 2), math.tanh(mean)))


@pytest.fixture(scope="module")
def paper():
    """The defaults, for a task of six actions; built without its 7 million numbers."""
    with torch.device("meta"):
        return Learner(
            model=Model(), retrace=Retrace(), truncation=Truncation(), actor_critic=ActorCritic(), size=64, actions=6
        )


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
    assert (rssm.cell.hidden_size, rssm.stoch, rssm.min_std) == (256, 32, 0.1)
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
    assert (model.free_nats, model.kl_scale) == (3.0, 1.0)
    assert (retrace.weight, retrace.loss, retrace.horizon, retrace.samples) == (1.0, "bisimulation", 1, 1)
    assert (actor_critic.horizon, actor_critic.discount, actor_critic.trace, actor_critic.exploration) == (15, 0.99, 0.95, 0.3)
    assert (actor_critic.gradient, actor_critic.starts) == ("dynamics", None)
    assert (actor_critic.init_std, actor_critic.min_std, actor_critic.mean_scale) == (5.0, 1e-4, 5.0)  # Dreamer's own
    assert model.init == "glorot"  # as TensorFlow begins
    assert (train.batch, train.length, train.updates, train.update_every) == (64, 50, 100, 1000)
    assert (train.evaluate_every, Env().action_repeat, Env().size) == (10_000, 2, 64)
    assert (rates.model, rates.critic, rates.actor, rates.clip) == (6e-4, 8e-5, 8e-5, 100.0)
    assert (Truncation().threshold, Truncation().window) == (0.10, 10)


def test_the_rssm_has_the_activation_that_it_is_given():
    negative = torch.full((1, 8), -1.0)
    for name, expected in (("relu", 0.0), ("elu", math.expm1(-1.0))):  # ELU(−1) = e⁻¹ − 1
        rssm = RSSM(embed=4, actions=2, deter=6, stoch=3, hidden=5, min_std=0.1, activation=name)
        assert_close(rssm.activation(negative), torch.full((1, 8), expected))
