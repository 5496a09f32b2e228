"""An update of a model-free agent: two learners that do not touch each other, and a resume to the bit."""

from __future__ import annotations

import pytest
import torch
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from tiny_learner import ACTIONS, NUMBERS, assert_equal, random_batch, updated
from tiny_model_free import model_free_updater

from ccwm.structs import Batch
from ccwm.training.finite import NotFinite
from ccwm.training.module import AgentModule


def batches(count: int, *, pixels: bool = False) -> list[Batch]:
    return [random_batch(5, 4, seed=seed, robust=not pixels) for seed in range(count)]


def test_sac_does_not_move_the_representation_and_learns_from_its_posteriors(monkeypatch: pytest.MonkeyPatch) -> None:
    # `l2` does not ask the policy, which the bisimulation does.
    updater, alone = (model_free_updater(retrace={"loss": "l2"}) for _ in range(2))
    feature = updater.module.training_step(batches(1)[0]).feature
    seen: list[ReplayBufferSamples] = []

    def only_look(samples: ReplayBufferSamples, module: AgentModule) -> dict[str, torch.Tensor]:
        seen.append(samples)
        return {}

    monkeypatch.setattr(alone, "soft_step", only_look)
    updated(updater, batches(2))
    updated(alone, batches(2))
    assert_equal(updater.module.learner.world_model.state_dict(), alone.module.learner.world_model.state_dict())
    assert not seen[0].observations.requires_grad
    assert_equal(seen[0].observations, feature[:-1].flatten(0, 1).detach())
    assert_equal(seen[0].next_observations, feature[1:].flatten(0, 1).detach())
    assert_equal(seen[0].actions, batches(1)[0].action[1:].flatten(0, 1))
    assert seen[0].rewards.shape == seen[0].dones.shape == (16, 1)


def test_an_update_moves_all_that_learns() -> None:
    updater = model_free_updater()
    before = {name: value.clone() for name, value in updater.module.learner.state_dict().items()}
    updated(updater, batches(2))
    after = updater.module.learner.state_dict()
    assert [name for name in before if torch.equal(before[name], after[name])] == []
    assert {"model/observation", "retrace/loss", "critic/loss", "temperature/alpha"} <= set(updater.averages())


@pytest.mark.parametrize("pixels", [False, True])
def test_a_resumed_updater_does_not_differ_in_a_bit(pixels: bool) -> None:
    changes = {"pixels": pixels, "truncation": {"mode": "auto"}}
    given = batches(4, pixels=pixels)
    whole, first = updated(model_free_updater(**changes), given), updated(model_free_updater(**changes), given[:2])
    resumed = model_free_updater(**changes)
    resumed.load_state_dict(first.state_dict())
    updated(resumed, given[2:])
    assert_equal(resumed.module.learner.state_dict(), whole.module.learner.state_dict())
    assert_equal(resumed.optimizer_state(), whole.optimizer_state())
    assert resumed.averages() == whole.averages()


def test_what_is_not_finite_ends_training() -> None:
    batch = batches(1)[0]
    with pytest.raises(NotFinite, match=r"update 0: model/reward, .* not finite"):
        model_free_updater().step(batch._replace(reward=torch.full((5, 4), torch.nan)))
    updater = updated(model_free_updater(), [batch])
    with torch.no_grad():
        updater.module.learner.networks.actor.mu.bias[0] = torch.inf
    with pytest.raises(NotFinite, match=r"networks\.actor\.mu\.bias not finite"):
        updater.state_dict()


def test_it_learns_to_retrace_and_to_act() -> None:
    """A state that the action moves, reward 1 − a₀² + a₁ and the end at once: the mode of the actor goes to (0, 1)."""
    updater = model_free_updater(
        model={"deter": 16, "hidden": 16}, sac={"learning_rate": 0.01, "units": 32}, optimiser={"model_lr": 3e-3},
        retrace={"reverse_units": 32, "loss": "l2"},
    )  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    skills = []
    for _ in range(300):
        batch = random_batch(5, 32, robust=True)
        action = torch.rand(5, 32, ACTIONS, generator=generator) * 2 - 1
        place = torch.cat([4 * action.cumsum(0), torch.zeros(5, 32, NUMBERS - ACTIONS)], -1)
        batch = batch._replace(observation=place, action=action, continues=torch.zeros(5, 32))
        batch = batch._replace(reward=1 - 4 * action[..., 0] ** 2 + 4 * action[..., 1])
        skills.append(updater.module.learner.retrace_skill(batch)["retrace_skill_observation"])
        updater.step(batch)
    assert sum(skills[-10:]) / 10 > 0.5  # half the way back, in squared distance
    assert sum(skills[:10]) / 10 < 0.2
    found = updater.module.learner.policy().act(torch.zeros(NUMBERS).numpy())
    assert found[0] == pytest.approx(0.0, abs=0.3)
    assert found[1] > 0.8
