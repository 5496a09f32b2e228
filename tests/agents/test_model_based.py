"""One update of the whole agent: what reaches what, and what must not matter."""

import math
from typing import get_args

import pytest
import torch
from tiny_learner import (
    DRAWN_HEADS,
    backward,
    noise_of,
    random_batch,
    reached,
    terms_of,
    tiny_learner,
    trained_parameters,
)
from torch.testing import assert_close

from ccwm.settings.agent import Retrace

RETRACE_LOSSES = get_args(Retrace.model_fields["loss"].annotation)
both_backbones = pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])
ADAPTIVE = {"mode": "adaptive", "window": 2, "threshold": 0.5}


def stepped(learner, batch):
    """Every weight after one step of Adam on every part."""
    backward(learner, terms_of(learner, batch).losses)
    for group in learner.parts().values():
        torch.optim.Adam(group, lr=1e-3).step()
    learner.actor_critic.follow_critic()
    return learner.state_dict()


@both_backbones
def test_dreamer_is_the_learner_without_retracing_to_the_bit(robust):
    dreamer, stripped, ccwm = (
        tiny_learner(robust=robust, retrace={"weight": weight}, **DRAWN_HEADS) for weight in (0.0, 1.0, 1.0)
    )
    assert dreamer.retracing is None
    assert dreamer.truncation is None
    stripped.retracing = stripped.truncation = None  # built as CCWM is: no other weight may differ for it
    batch = random_batch(robust=robust)
    mine, theirs = terms_of(dreamer, batch).metrics, terms_of(ccwm, batch).metrics
    terms_of(stripped, batch)  # each has made one step of its running means
    assert not any(name.startswith("retrace/") for name in mine)
    assert all(torch.equal(value, theirs[name]) for name, value in mine.items())
    first = {name: value.clone() for name, value in dreamer.state_dict().items()}
    assert all(torch.equal(value, ccwm.state_dict()[name]) for name, value in first.items())
    after, again, with_retracing = stepped(dreamer, batch), stepped(stripped, batch), stepped(ccwm, batch)
    assert list(after) == list(again)
    for name, value in after.items():
        assert torch.equal(value, again[name]), name
        if not name.endswith("return_range.mean"):  # of the same returns once more
            assert not torch.equal(value, first[name]), name
        if name.startswith("actor_critic."):  # within one update retracing does not move actor or critic
            assert torch.equal(value, with_retracing[name]), name
    assert not torch.equal(after["world_model.rssm.cell.weight_hh"], with_retracing["world_model.rssm.cell.weight_hh"])


@both_backbones
@pytest.mark.parametrize("loss", RETRACE_LOSSES)
@pytest.mark.parametrize("way", ["joint", "separate"])
def test_every_parameter_learns_from_the_loss_of_its_part_alone(loss, way, robust):
    model = DRAWN_HEADS["model"] | {"continues": True}
    learner = tiny_learner(robust=robust, retrace={"loss": loss, "reverse_action": way}, model=model)
    groups = learner.parts()
    assert ("reverse" in groups) == (way == "separate")
    losses = terms_of(learner, random_batch(robust=robust)).losses
    assert losses.keys() == groups.keys()
    name_of = {id(parameter): name for name, parameter in learner.named_parameters() if parameter.requires_grad}
    taught = []
    for part, part_loss in losses.items():
        learner.zero_grad()
        part_loss.backward(inputs=groups[part], retain_graph=True)
        moved = [name for name, p in learner.named_parameters() if p.grad is not None and p.grad.any()]
        assert sorted(moved) == sorted(name_of[id(parameter)] for parameter in groups[part])
        taught += moved
    assert sorted(taught) == sorted(name_of.values())  # each parameter has one optimiser, and none is forgotten


@pytest.mark.parametrize("loss", RETRACE_LOSSES)
@pytest.mark.parametrize("signal", ["value", "q"])
def test_the_model_and_retrace_losses_have_no_path_to_actor_or_critic(loss, signal):
    learner = tiny_learner(retrace={"loss": loss}, truncation=ADAPTIVE | {"signal": signal})
    losses = terms_of(learner, random_batch()).losses
    assert not any(reached(losses["model"], trained_parameters(learner.actor_critic)))
    assert all(reached(losses["model"], learner.retracing.parameters()))


@both_backbones
@pytest.mark.parametrize("gradient", ["dynamics", "reinforce"])
def test_imagination_has_no_path_to_what_was_observed(gradient, robust):
    learner = tiny_learner(robust=robust, actor_critic={"gradient": gradient})
    losses = terms_of(learner, random_batch(robust=robust)).losses
    for part in ("actor", "critic"):
        assert not any(reached(losses[part], learner.world_model.encoder.parameters()))
        assert not any(reached(losses[part], learner.retracing.parameters()))


def learned(learner, batch, noise):
    """Metrics and gradients of one update with this noise."""
    losses, metrics = terms_of(learner, batch, noise=noise)
    backward(learner, losses)
    return {**metrics, "gradients": torch.cat([parameter.grad.flatten() for parameter in trained_parameters(learner)])}


@pytest.mark.parametrize(
    ("starts", "robust"), [(None, False), (3, False), (3, True)], ids=["all starts", "three", "three, robust"]
)
def test_the_order_of_a_batch_does_not_matter(starts, robust):
    learner = tiny_learner(
        robust=robust,
        retrace={"horizon": 2, "samples": 2},
        truncation=ADAPTIVE | ({"threshold": 0.1} if robust else {}),
        model=DRAWN_HEADS["model"] | {"continues": True},
        actor_critic={"starts_per_window": starts},
    ).double()
    learner.eval()  # both updates begin at the same running means
    batch = random_batch(5, 4, robust=robust, dtype=torch.float64)
    batch.is_first[2, 1] = True
    batch.continues[3, 2] = 0.0
    noise = noise_of(learner, batch)
    order = torch.tensor([2, 0, 3, 1])

    def rollouts(value):
        """Rollouts start from [starts, B] posteriors: put their B into the new order."""
        return value.unflatten(1, (-1, 4))[:, :, order].flatten(1, 2)

    moved = type(batch)(*(part[:, order] for part in batch))
    moved_noise = noise._replace(
        posterior=noise.posterior[:, order],
        start=noise.start[:, order],
        imagined=rollouts(noise.imagined),
        action=rollouts(noise.action),
        retraced=noise.retraced[:, :, :, order],
    )
    first, second = learned(learner, batch, noise), learned(learner, moved, moved_noise)
    assert 0 < first["retrace/truncated_share"] < 1
    assert_close(second, first)


def test_imagination_starts_from_the_chosen_posteriors_of_each_window():
    learner, batch = tiny_learner(actor_critic={"starts_per_window": 2}), random_batch(5, 3)
    noise, seen = noise_of(learner, batch), []
    observed, _ = learner.observe(batch, noise)
    imagine = learner.actor_critic.imagine
    learner.actor_critic.imagine = lambda start, *args, **options: (
        seen.append(start),
        imagine(start, *args, **options),
    )[1]
    learner.imagine(observed.posterior, noise)
    (start,) = seen
    wanted = [observed.posterior.feature[noise.start[row, column], column] for row in range(2) for column in range(3)]
    assert_close(start.feature, torch.stack(wanted))
    assert not start.feature.requires_grad


def test_weights_scale_their_terms_once():
    plain = terms_of(tiny_learner(), random_batch()).metrics
    scales = {"observation_scale": 2.0, "reward_scale": 3.0, "kl_dynamics": 5.0, "kl_representation": 0.1}
    losses, scaled = terms_of(tiny_learner(model=scales, retrace={"weight": 7.0}), random_batch())
    wanted = {"model/observation": 2, "model/reward": 3, "model/kl": 1, "model/nats": 1, "retrace/loss": 7}
    for name, scale in wanted.items():
        assert_close(scaled[name], scale * plain[name])
    parts = ("model/observation", "model/reward", "model/kl", "retrace/loss")
    assert_close(losses["model"].detach(), sum(scaled[name] for name in parts))


def test_losses_and_metrics_by_name():
    """The names of what is logged, which curves, studies and MLflow read."""
    learner = tiny_learner(model={"continues": True}, truncation={"mode": "auto", "window": 2})
    losses, metrics = terms_of(learner, random_batch())
    assert losses.keys() == {"model", "actor", "critic"}
    assert all(loss.requires_grad for loss in losses.values())
    model = {f"model/{name}" for name in ("observation", "reward", "kl", "continues", "nats")}
    retrace = {f"retrace/{name}" for name in ("loss", "truncated_share", "l1", "reward_kl", "w2", "threshold")}
    plain = {"retrace/loss", "retrace/truncated_share"}
    actor_critic = {"actor/loss", "actor/entropy", "actor/std", "critic/loss", "critic/value", "critic/return",
                    "critic/reward"}  # fmt: skip
    assert metrics.keys() == model | retrace | actor_critic
    of_bins = terms_of(tiny_learner(robust=True, retrace={"loss": "kl"}), random_batch(robust=True)).metrics
    assert of_bins.keys() == (model | plain | actor_critic | {"actor/return_range"}) - {"model/continues"}


def test_every_layer_of_a_learner_is_redrawn():
    learner = tiny_learner(model={"continues": True})
    biases = [value for name, value in learner.named_parameters() if "bias" in name]
    assert len(biases) > 20
    assert not any(bias.any() for bias in biases)


def test_a_learner_may_keep_torchs_own_initial_weights():
    learner = tiny_learner(model={"init": "torch"})
    critic = learner.actor_critic.critic.layers[0]
    bound = 1 / math.sqrt(critic.in_features)  # torch's, for weights and biases alike
    assert 0.9 * bound < critic.weight.abs().max() <= bound
    assert critic.bias.any()
    assert learner.world_model.rssm.cell.bias_hh.any()


@pytest.mark.parametrize("zero", [True, False])
def test_reward_and_critic_of_a_learner_begin_at_zero_where_it_is_asked_for(zero):
    learner = tiny_learner(robust=True, model={"zero_heads": zero, "continues": True})
    metrics = terms_of(learner, random_batch(robust=True)).metrics
    for name in ("critic/value", "critic/reward", "critic/return"):
        assert (abs(metrics[name]) < 1e-5) == zero, name
    layers = [learner.world_model.reward, learner.actor_critic.critic, learner.actor_critic.slow_critic]
    assert [bool(head.layers[-1].weight.any()) for head in layers] == [not zero] * 3
    assert learner.actor_critic.actor.layers[-1].weight.any()
    assert learner.world_model.continues.layers[-1].weight.any()


TRUNCATIONS = {
    "adaptive": {"mode": "adaptive", "window": 2, "lookback": 1, "threshold": 1.0},
    "algorithm1 of q": {"mode": "adaptive", "window": 2, "threshold": 0.3, "rule": "algorithm1", "signal": "q"},
    "auto": {"mode": "auto", "window": 2},
    "scheduled": {"mode": "scheduled", "final_share": 0.1},  # the last of the five steps
}


@pytest.mark.parametrize("truncation", TRUNCATIONS.values(), ids=TRUNCATIONS)
@pytest.mark.parametrize(
    "retrace",
    [{"loss": "kl", "horizon": 3, "samples": 2}, {"loss": "metric", "length": 4, "reverse_action": "separate"}],
    ids=["chains", "separate stretch"],
)
def test_the_robust_backbone_learns_with_every_truncation(truncation, retrace):
    learner = tiny_learner(robust=True, truncation=truncation, retrace=retrace, **DRAWN_HEADS)
    losses, metrics = terms_of(learner, random_batch(robust=True))
    backward(learner, losses)
    assert all(value.isfinite() for value in metrics.values())
    assert all(parameter.grad.isfinite().all() for parameter in trained_parameters(learner))
    assert 0 < metrics["retrace/truncated_share"] < 1
    assert metrics["retrace/loss"] > 0
