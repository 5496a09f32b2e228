"""Where reading a number would mean waiting for a device, a bad update is not stepped, and raises later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from test_mixed_precision import batches, overflow_at, plain, scaled, weights_and_adam
from tiny_learner import assert_equal, random_batch, updated

from ccwm.training import finite
from ccwm.training.finite import FiniteCheck, NotFinite
from ccwm.training.update import JointUpdater


class Distant(torch.Tensor):
    """A tensor of this CPU that says it is on an accelerator."""

    device = torch.device("cuda")


@pytest.fixture
def distant(monkeypatch):
    """Make FiniteCheck believe that its numbers are on an accelerator."""
    here = SimpleNamespace(**vars(torch))
    here.cat = lambda parts: torch.cat(parts).as_subclass(Distant)
    here.full = lambda shape, value, *, device: torch.full(shape, value)
    monkeypatch.setattr(finite, "torch", here)


def poisoned():
    """Four batches; the second and the third are bad, each in another term."""
    drawn = batches(4)
    drawn[1].reward[2, 1] = float("nan")
    drawn[2].action[1, 0] = float("inf")
    return drawn


def test_good_updates_are_the_same_bits(distant, monkeypatch):
    unread = updated(plain(), batches(3)).state_dict()
    monkeypatch.undo()
    assert_equal(unread, updated(plain(), batches(3)).state_dict())


def test_nothing_is_stepped_from_the_first_bad_update_on(distant):
    updater = updated(plain(), poisoned())
    for tell in (updater.averages, updater.state_dict):
        with pytest.raises(NotFinite, match="update 1: model/reward, grad_norm/model not finite"):
            tell()
    assert_equal(weights_and_adam(updater), weights_and_adam(updated(plain(), batches(1))))


def test_a_bad_gradient_of_a_fine_loss(distant):
    updater = updated(overflow_at(plain(), 1), batches(2))
    with pytest.raises(NotFinite, match="update 1: grad_norm/critic not finite"):
        updater.state_dict()


def test_an_overflow_under_scaling_is_skipped_alone(distant, monkeypatch):
    unread = updated(overflow_at(scaled(), 1), batches(3)).state_dict()
    unread["sums"] = {name: value.as_subclass(torch.Tensor) for name, value in unread["sums"].items()}
    monkeypatch.undo()
    assert_equal(unread, updated(overflow_at(scaled(), 1), batches(3)).state_dict())
    assert unread["sums"]["precision/skipped"] == 1


def test_a_bad_loss_under_scaling_is_told_of_though_the_step_was_skipped(distant):
    updater = updated(scaled(), poisoned())
    with pytest.raises(NotFinite, match="update 1: model/reward not finite"):
        updater.averages()


def test_on_a_cpu_a_bad_update_is_refused_at_once():
    updater = updated(plain(), batches(1))
    with pytest.raises(NotFinite, match="update 1: model/reward, grad_norm/model not finite"):
        updater.step(poisoned()[1])


def test_a_check_reads_nothing_that_is_fine():
    numbers = {"loss": torch.tensor(1.0)}, {"grad_norm/model": torch.tensor(2.0)}
    check = FiniteCheck()
    assert check.skip(0, *numbers, None) is None
    check.raise_if_skipped()


@pytest.mark.parametrize(("device", "pinned"), [("meta", True), ("cpu", False)])
def test_batches_for_an_accelerator_are_pinned_and_cast(device, pinned, monkeypatch):
    calls = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda part: (calls.append(part), part)[1])
    updater = SimpleNamespace(
        fabric=SimpleNamespace(device=torch.device(device)),
        module=SimpleNamespace(learner=SimpleNamespace(dtype=torch.float64)),
    )
    batch = random_batch()
    moved = JointUpdater.on_device(updater, batch)
    assert len(calls) == (len(batch) if pinned else 0)
    assert {part.device.type for part in moved} == {device}
    floats = {name for name, part in moved._asdict().items() if part.dtype == torch.float64}
    assert floats == {"action", "reward", "continues"}
    assert moved.observation.dtype == torch.uint8
