"""Half precision: what is stepped, what is skipped, what is refused, and which sums stay in float32."""

from __future__ import annotations

import copy
from contextlib import nullcontext

import lightning as L
import pytest
import torch
from lightning.pytorch.plugins import MixedPrecision
from tiny_learner import backward, losses_of, random_batch, tiny_learner
from torch.utils.data import DataLoader

from ccwm.ops.gaussian import kl_divergence, log_prob, tanh_log_prob, unit_nll, wasserstein2
from ccwm.ops.returns import discount_weights, generalised_advantage, lambda_return
from ccwm.settings.agent import Optimiser
from ccwm.structs import Gaussian
from ccwm.training.finite import NotFinite
from ccwm.training.module import CCWM

CLIP = 1e-5


class ScaledOnly(MixedPrecision):
    """Loss scaling in float32: with scales that are powers of two, no bit may differ from a run without."""

    def forward_context(self):
        return nullcontext()


def scaled(scale=1024.0, growth_interval=2000):
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=growth_interval)
    return ScaledOnly("16-mixed", "cpu", scaler)


def fresh():
    return CCWM(tiny_learner(), optimiser=Optimiser(clip=CLIP), seed=0)


def fit(module, batches, plugin=None):
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    plugins = [] if plugin is None else [plugin]
    trainer = L.Trainer(accelerator="cpu", max_epochs=1, enable_checkpointing=False, plugins=plugins, **quiet)
    trainer.fit(module, DataLoader(batches, batch_size=None))
    return module


def batches(count):
    return [random_batch(seed=seed) for seed in range(count)]


def overflow_at(module, update):
    """Make one gradient infinite in one update."""
    weight = next(module.learner.actor_critic.critic.parameters())
    weight.register_hook(lambda gradient: gradient / 0 if module.counters.updates == update else gradient)


def assert_equal(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_the_scale_of_the_loss_changes_nothing():
    """Clipping, too, sees unscaled gradients: every part's norm is above the clip."""
    plain, with_scale = fit(fresh(), batches(2)).snapshot(), fit(fresh(), batches(2), scaled()).snapshot()
    assert all(value / 2 > CLIP for name, value in plain["sums"].items() if name.startswith("grad_norm/"))
    for key in ("learner", "optimisers"):
        assert_equal(with_scale[key], plain[key])
    logged = with_scale["sums"]
    assert (logged.pop("precision/scale"), logged.pop("precision/skipped")) == (2 * 1024, 0)
    assert_equal(logged, plain["sums"])


def test_an_overflow_skips_the_whole_step_and_lowers_the_scale():
    before, module = fit(fresh(), batches(1), scaled()).snapshot(), fresh()
    overflow_at(module, 1)
    fit(module, batches(2), scaled())
    after = module.snapshot()
    for key in ("learner", "optimisers"):
        assert_equal(after[key], before[key])  # of no part, though only the critic's gradient was infinite
    assert after["scaler"]["scale"] == 512
    assert after["counters"]["updates"] == 2
    means = module.averages()
    assert (means["precision/skipped"], means["precision/scale"]) == (0.5, 1024)
    assert_equal(means["grad_norm/critic"], float(before["sums"]["grad_norm/critic"]) / 2)  # a skipped one counts as 0


def test_the_update_after_a_skipped_one_is_made_as_if_it_were_the_first():
    module, later = fresh(), fresh()
    overflow_at(module, 0)
    fit(module, batches(2), scaled())
    later.counters.updates = 1
    fit(later, batches(2)[1:])
    for key in ("learner", "optimisers"):
        assert_equal(module.snapshot()[key], later.snapshot()[key])


def test_a_loss_that_is_no_number_is_refused_under_scaling_too():
    module = fit(fresh(), batches(1), scaled())
    before = copy.deepcopy(module.snapshot())
    bad = random_batch()
    bad.reward[2, 1] = float("nan")
    module.scaler_state = before["scaler"]
    with pytest.raises(NotFinite, match="update 1: model/reward"):
        fit(module, [bad], scaled())
    assert_equal(module.snapshot(), before)


def test_an_overflow_without_a_scale_to_lower_is_refused():
    module = fresh()
    overflow_at(module, 0)
    with pytest.raises(NotFinite, match="update 0: grad_norm/critic not finite"):
        fit(module, batches(1), scaled(1.0))


def test_a_resumed_run_has_the_scale_and_its_count():
    """The scale doubles after three good updates, two before and one after the interruption."""
    whole = fit(fresh(), batches(4), scaled(growth_interval=3)).snapshot()
    saved = copy.deepcopy(fit(fresh(), batches(2), scaled(growth_interval=3)).snapshot())
    resumed = fresh()
    resumed.restore(saved)
    assert resumed.snapshot()["scaler"] == saved["scaler"]  # also before the first fit
    fit(resumed, batches(4)[2:], scaled(growth_interval=3))
    assert whole["scaler"]["scale"] == 2048
    assert_equal(resumed.snapshot(), whole)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("loss", ["bisimulation", "l2", "reconstruction"])
def test_autocast_gives_nearly_the_same_finite_losses(loss, dtype):
    learner = tiny_learner(model={"continues": True}, retrace={"loss": loss})
    batch = random_batch()
    plain = losses_of(learner, batch).terms
    with torch.autocast("cpu", dtype=dtype):
        losses = losses_of(learner, batch)
    backward(learner, losses)
    assert all(parameter.grad.isfinite().all() for parameter in learner.parameters())
    assert {loss.dtype for loss in losses.parts.values()} == {torch.float32}
    for name, value in losses.terms.items():
        torch.testing.assert_close(value.float(), plain[name], rtol=0.05, atol=0.02, msg=lambda text, n=name: n + text)


def test_what_is_logged_is_summed_in_float32():
    """In bfloat16 a sum of equal numbers stops growing at 256 of them, and is a percent off long before."""
    module = fit(fresh(), batches(2), MixedPrecision("bf16-mixed", "cpu"))
    assert {value.dtype for value in module.sums.values()} == {torch.float32}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_squares_ratios_and_returns_of_half_precision_are_computed_in_float32(dtype):
    """300² = 90,000 is more than float16 holds (65,504); 3 · 50,000 is, too."""
    zero, one = torch.zeros(2, dtype=dtype), torch.ones(2, dtype=dtype)
    far = Gaussian(300 * one, one)
    near = Gaussian(zero, one)
    wanted = {
        "kl": (kl_divergence(far, near), 90_000.0),  # 2 · 300² / 2
        "w2": (wasserstein2(far, near), 180_000.0),  # 2 · 300²
        "nll": (unit_nll(far.mean, zero).sum(), 90_000.0),
        "log_prob": (log_prob(near, far.mean), -90_001.837877),  # −½ · 2 · 300² − log 2π
    }
    for name, (got, number) in wanted.items():
        assert got.dtype == torch.float32, name
        assert float(got) == pytest.approx(number, rel=1e-6), name
    assert tanh_log_prob(near, zero).dtype == torch.float32
    large = torch.full((3, 1), 50_000.0, dtype=dtype)
    certain = torch.ones(3, 1, dtype=dtype)
    returns = lambda_return(large, certain, large, lam=1.0)
    exact = float(large[0])
    assert returns.flatten().tolist() == [3 * exact, 2 * exact]
    assert generalised_advantage(large, certain, large, lam=1.0).flatten().tolist() == [2 * exact, exact]
    assert discount_weights(certain).dtype == torch.float32
