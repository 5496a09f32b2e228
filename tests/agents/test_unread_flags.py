"""Where reading a number would mean waiting for a device, a bad update is left out first and told of later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from test_mixed_precision import assert_equal, batches, fit, fresh, overflow_at, scaled

from ccwm.training import finite
from ccwm.training.cycle import cycle_loader
from ccwm.training.finite import NotFinite
from ccwm.training.module import Counters


@pytest.fixture
def late(monkeypatch):
    """Make this CPU one of the devices whose numbers are not read at once."""
    monkeypatch.setattr(finite, "reads_at_once", lambda value: False)


def poisoned():
    """Four batches; the second and the third are bad, each in another term."""
    drawn = batches(4)
    drawn[1].reward[2, 1] = float("nan")
    drawn[2].action[1, 0] = float("inf")
    return drawn


def test_good_updates_are_the_same_bits(late, monkeypatch):
    unread = fit(fresh(), batches(3)).snapshot()
    monkeypatch.undo()
    assert_equal(unread, fit(fresh(), batches(3)).snapshot())


def test_nothing_is_stepped_from_the_first_bad_update_on(late):
    module = fit(fresh(), poisoned())
    for tell in (module.averages, module.snapshot):
        with pytest.raises(NotFinite) as told:
            tell()
        assert str(told.value).startswith("update 1: model/reward, grad_norm/model not finite")
    before = fit(fresh(), batches(1)).snapshot()
    assert_equal(module.learner.state_dict(), before["learner"])
    optimisers = {part: optimiser.state_dict() for part, optimiser in module.parts_optimisers.items()}
    assert_equal(optimisers, before["optimisers"])


def test_a_bad_gradient_of_a_fine_loss(late):
    module = fresh()
    overflow_at(module, 1)
    with pytest.raises(NotFinite, match="update 1: grad_norm/critic not finite"):
        fit(module, batches(2)).snapshot()


def test_an_overflow_under_scaling_is_skipped_alone(late, monkeypatch):
    def run():
        module = fresh()
        overflow_at(module, 1)
        return fit(module, batches(3), scaled()).snapshot()

    unread = run()
    monkeypatch.undo()
    assert_equal(unread, run())
    assert unread["sums"]["precision/skipped"] == 1


@pytest.mark.parametrize(("device", "pinned"), [("cuda", True), ("cpu", False)])
def test_batches_for_an_accelerator_are_pinned(device, pinned):
    module = SimpleNamespace(device=torch.device(device), counters=Counters())
    assert cycle_loader(module, None, 5).pin_memory is pinned
