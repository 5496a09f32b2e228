"""Updates in half precision and under loss scaling: what is stepped, what is skipped, what is refused."""

from __future__ import annotations

import copy
from contextlib import nullcontext

import pytest
import torch
from lightning.fabric.plugins import MixedPrecision
from tiny_learner import DRAWN_HEADS, assert_equal, random_batch, tiny_updater, trained_parameters, updated

from ccwm.training.finite import NotFinite

CLIP = 1e-5
both_backbones = pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])


class ScaledOnly(MixedPrecision):
    """Loss scaling in float32: with scales that are powers of two, no bit may differ from a run without."""

    def forward_context(self):
        return nullcontext()


def scaled(scale=1024.0, growth_interval=2000, *, robust=False):
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=growth_interval)
    plugin = ScaledOnly("16-mixed", "cpu", scaler)
    return tiny_updater(plugin=plugin, robust=robust, optimiser={"grad_clip": CLIP}, **DRAWN_HEADS)


def plain(*, robust=False):
    return tiny_updater(robust=robust, optimiser={"grad_clip": CLIP}, **DRAWN_HEADS)


def batches(count, *, robust=False):
    return [random_batch(seed=seed, robust=robust) for seed in range(count)]


def overflow_at(updater, update):
    """Make one gradient infinite in one update."""
    weight = next(updater.module.learner.actor_critic.critic.parameters())
    counters = updater.module.counters
    weight.register_hook(lambda gradient: gradient / 0 if counters.updates == update else gradient)
    return updater


def weights_and_adam(updater):
    return updater.module.learner.state_dict(), updater.optimizer.state_dict()


@both_backbones
def test_the_scale_of_the_loss_changes_nothing(robust):
    """Clipping, too, sees unscaled gradients: every part's norm is above the clip."""
    without, with_scale = (updated(make(robust=robust), batches(2, robust=robust)) for make in (plain, scaled))
    logged, wanted = with_scale.averages(), without.averages()
    assert all(value > CLIP for name, value in wanted.items() if name.startswith("grad_norm/"))
    assert_equal(weights_and_adam(with_scale), weights_and_adam(without))
    assert (logged.pop("precision/scale"), logged.pop("precision/skipped")) == (1024, 0)
    assert_equal(logged, wanted)


def test_an_overflow_skips_the_whole_step_and_lowers_the_scale():
    before, after = updated(scaled(), batches(1)), updated(overflow_at(scaled(), 1), batches(2))
    # Of no part, though only the critic's gradient was infinite.
    assert_equal(weights_and_adam(after), weights_and_adam(before))
    assert after.state_dict()["scaler"]["scale"] == 512
    assert after.module.counters.updates == 2
    means, first = after.averages(), before.averages()
    assert (means["precision/skipped"], means["precision/scale"]) == (0.5, 1024)
    assert means["grad_norm/critic"] == pytest.approx(first["grad_norm/critic"] / 2)  # a skipped one counts as 0


def test_the_update_after_a_skipped_one_is_made_as_if_it_were_the_first():
    skipped, later = updated(overflow_at(scaled(), 0), batches(2)), plain()
    later.module.counters.updates = 1
    updated(later, batches(2)[1:])
    assert_equal(weights_and_adam(skipped), weights_and_adam(later))


def test_a_loss_that_is_no_number_is_refused_under_scaling_too():
    updater = updated(scaled(), batches(1))
    before = copy.deepcopy(updater.state_dict())
    bad = random_batch()
    bad.reward[2, 1] = float("nan")
    with pytest.raises(NotFinite, match="update 1: model/reward"):
        updater.step(bad)
    assert_equal(updater.state_dict(), before)


def test_an_overflow_without_a_scale_to_lower_is_refused():
    updater = overflow_at(scaled(1.0), 0)
    with pytest.raises(NotFinite, match="update 0: grad_norm/critic"):
        updater.step(random_batch())


def test_a_resumed_run_has_the_scale_and_its_count():
    """The scale doubles after three good updates, two before and one after the interruption."""
    whole = updated(scaled(growth_interval=3), batches(4)).state_dict()
    saved = copy.deepcopy(updated(scaled(growth_interval=3), batches(2)).state_dict())
    resumed = scaled(growth_interval=3)
    resumed.load_state_dict(saved)
    assert_equal(resumed.state_dict(), saved)
    updated(resumed, batches(4)[2:])
    assert whole["scaler"]["scale"] == 2048
    assert_equal(resumed.state_dict(), whole)


@both_backbones
@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
def test_half_precision_of_fabric_updates_every_weight_and_logs_float32(precision, robust):
    """In bfloat16 a sum of equal numbers stops growing at 256 of them, and is a percent off long before."""
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0) if precision == "16-mixed" else None
    updater = tiny_updater(plugin=MixedPrecision(precision, "cpu", scaler), robust=robust, **DRAWN_HEADS)
    seen = set()
    learner = updater.module.learner
    first = {name: value.clone() for name, value in learner.state_dict().items()}
    learner.world_model.encoder.layers[0].register_forward_hook(lambda module, given, made: seen.add(made.dtype))
    updated(updater, batches(2, robust=robust))
    assert seen == {torch.bfloat16 if precision == "bf16-mixed" else torch.float16}
    assert {value.dtype for value in updater.sums.values()} == {torch.float32}
    assert {value.dtype for value in learner.state_dict().values()} == {torch.float32}
    assert not any(torch.equal(value, first[name]) for name, value in learner.state_dict().items())
    full = updated(tiny_updater(robust=robust, **DRAWN_HEADS), batches(2, robust=robust)).averages()
    half = updater.averages()
    assert half["model/observation"] == pytest.approx(full["model/observation"], rel=0.02)
    assert (updater.scaler is not None) == ("precision/scale" in half) == (precision == "16-mixed")


@both_backbones
def test_double_precision_of_fabric_goes_all_the_way(robust):
    settings = {"robust": robust, "truncation": {"mode": "auto", "window": 2}}
    updater = updated(tiny_updater(precision="64-true", **settings), batches(2, robust=robust))
    learner = updater.module.learner
    made = [*updater.sums.values(), *learner.state_dict().values(), *(p.grad for p in trained_parameters(learner))]
    assert {value.dtype for value in made} == {torch.float64}
    single = updated(tiny_updater(**settings), batches(1, robust=robust)).averages()
    assert updater.averages().keys() == single.keys()
