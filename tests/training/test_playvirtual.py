"""An update of PlayVirtual: what it moves, that it resumes to the bit, and that it learns."""

from __future__ import annotations

import pytest
import torch
from tiny_learner import ACTIONS, NUMBERS, assert_equal, random_batch, updated
from tiny_playvirtual import playvirtual_updater

from ccwm.structs import Batch


def batches(count: int, *, pixels: bool = False) -> list[Batch]:
    return [random_batch(4 if pixels else 3, 4, seed=seed, robust=not pixels) for seed in range(count)]


def test_an_update_moves_all_that_learns_and_the_weight_scales_the_cycle() -> None:
    updater, half = playvirtual_updater(), playvirtual_updater(retrace={"weight": 0.5})
    before = {name: value.clone() for name, value in updater.module.learner.state_dict().items()}
    one, other = (of.module.training_step(batches(1)[0]).terms for of in (updater, half))
    torch.testing.assert_close(other.metrics["retrace/loss"], one.metrics["retrace/loss"] / 2)
    torch.testing.assert_close(one.losses["model"], one.metrics["model/prediction"] + one.metrics["retrace/loss"])
    updated(updater, batches(3))
    after = updater.module.learner.state_dict()
    assert [name for name in before if torch.equal(before[name], after[name])] == []
    assert {"model/prediction", "retrace/loss", "critic/loss", "grad_norm/model"} <= set(updater.averages())


@pytest.mark.parametrize("pixels", [False, True])
def test_a_resumed_updater_does_not_differ_in_a_bit(pixels: bool) -> None:
    given = batches(4, pixels=pixels)
    whole = updated(playvirtual_updater(pixels=pixels), given)
    first = updated(playvirtual_updater(pixels=pixels), given[:2])
    resumed = playvirtual_updater(pixels=pixels)
    resumed.load_state_dict(first.state_dict())
    updated(resumed, given[2:])
    assert_equal(resumed.module.learner.state_dict(), whole.module.learner.state_dict())
    assert_equal(resumed.optimizer_state(), whole.optimizer_state())


def test_it_learns_to_predict_and_to_act() -> None:
    """A state that the action moves, reward 1 − 4a₀² + 4a₁ and the end at once: the actor's mode goes to (0, 1)."""
    updater = playvirtual_updater(
        playvirtual={"latent": 8, "units": 32}, sac={"learning_rate": 0.01, "units": 32}, optimiser={"model_lr": 1e-3}
    )
    generator, losses = torch.Generator().manual_seed(0), []
    for _ in range(300):
        action = torch.rand(3, 64, ACTIONS, generator=generator) * 2 - 1
        start = torch.randn(64, ACTIONS, generator=generator)
        place = torch.cat([start + action.cumsum(0), torch.zeros(3, 64, NUMBERS - ACTIONS)], -1)
        batch = random_batch(3, 64, robust=True)._replace(observation=place, action=action)
        reward = 1 - 4 * action[..., 0] ** 2 + 4 * action[..., 1]
        updater.step(batch._replace(reward=reward, continues=torch.zeros(3, 64)))
        losses.append(updater.averages())
    for name in ("model/prediction", "retrace/loss"):
        first, last = (sum(of[name] for of in part) for part in (losses[:10], losses[-10:]))
        assert last < first / 3, name
    found = updater.module.learner.policy().act(torch.zeros(NUMBERS).numpy())
    assert found[0] == pytest.approx(0.0, abs=0.3)
    assert found[1] > 0.8
