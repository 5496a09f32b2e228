"""One update: what it changes, what it reports, and that a resumed one does not differ in a bit."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from project import Project

from ccwm.structs import Batch
from ccwm.training.devices import launch
from ccwm.training.finite import NotFinite
from ccwm.training.kinds import build_module
from ccwm.training.module import CCWM
from ccwm.training.update import JointUpdater


@pytest.fixture
def updater(module: CCWM, collected: Project) -> JointUpdater:
    return JointUpdater(launch(collected.settings().agent_config.trainer), module)


def assert_equal(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def weights(module: CCWM) -> dict[str, torch.Tensor]:
    return copy.deepcopy(module.learner.state_dict())


def test_an_update_changes_every_part_once(updater: JointUpdater, batches: list[Batch]) -> None:
    before = weights(updater.module)
    updater.step(batches[0])
    changed = {name for name, weight in weights(updater.module).items() if not torch.equal(weight, before[name])}
    assert {name.split(".")[0] for name in changed} >= {"world_model", "actor_critic", "retracing"}
    assert updater.module.counters.updates == 1
    steps = {int(state["step"]) for state in updater.adam.state.values()}
    assert steps == {1}
    assert len(updater.adam.state) == len(list(updater.module.learner.parameters()))


def test_a_loss_reaches_the_parameters_of_its_part_alone(
    module: CCWM, batches: list[Batch], collected: Project
) -> None:
    """Without learning rates for actor and critic, only the world model moves."""
    config = collected.settings().agent_config
    rates = config.optimiser.model_copy(update={"actor_lr": 0.0, "critic_lr": 0.0})
    module.learner.config = config.model_copy(update={"optimiser": rates})
    updater = JointUpdater(launch(config.trainer), module)
    before = weights(module)
    updater.step(batches[0])
    changed = {name for name, weight in weights(module).items() if not torch.equal(weight, before[name])}
    assert not [name for name in changed if name.startswith("actor_critic.")]
    assert [name for name in changed if name.startswith("world_model.")]


def test_averages_are_means_since_the_last_call(updater: JointUpdater, batches: list[Batch]) -> None:
    singles = []
    for batch in batches[:2]:
        updater.step(batch)
        singles.append(updater.averages())
    again = copy.deepcopy(updater.module.learner.config)
    module = build_module(again, seed=0, observation_shape=(32, 32, 3), actions=2)
    both = JointUpdater(updater.fabric, module)
    for batch in batches[:2]:
        both.step(batch)
    means = {name: (singles[0][name] + singles[1][name]) / 2 for name in singles[0]}
    assert both.averages() == pytest.approx(means, rel=1e-6)
    assert {"model/observation", "model/kl", "retrace/loss", "actor/loss", "critic/loss", "grad_norm/model"} <= set(
        means
    )


def test_a_resumed_updater_does_not_differ_in_a_bit(updater: JointUpdater, batches: list[Batch]) -> None:
    for batch in batches[:3]:
        updater.step(batch)
    state = copy.deepcopy(updater.state_dict())
    config = updater.module.learner.config
    resumed = JointUpdater(updater.fabric, build_module(config, seed=0, observation_shape=(32, 32, 3), actions=2))
    resumed.load_state_dict(state)
    for batch in batches[3:]:
        updater.step(batch)
        resumed.step(batch)
    assert_equal(resumed.state_dict(), updater.state_dict())
    assert resumed.averages() == updater.averages()


@pytest.mark.parametrize("poison", [float("nan"), 1e30])  # in the batch; its square, in the loss
def test_a_bad_reward_is_stopped_by_name_and_steps_nothing(
    updater: JointUpdater, batches: list[Batch], poison: float
) -> None:
    updater.step(batches[0])
    before = copy.deepcopy(updater.state_dict())
    reward = batches[1].reward.clone()
    reward[2, 1] = poison
    with pytest.raises(NotFinite, match="update 1: model/reward"):
        updater.step(batches[1]._replace(reward=reward))
    assert_equal(updater.state_dict(), before)


def test_a_bad_gradient_of_a_fine_loss_is_stopped_by_name(updater: JointUpdater, batches: list[Batch]) -> None:
    weight = next(updater.module.learner.actor_critic.critic.parameters())

    def poison(gradient: torch.Tensor) -> torch.Tensor:
        return gradient if updater.module.counters.updates == 0 else gradient / 0

    weight.register_hook(poison)  # type: ignore[no-untyped-call]
    updater.step(batches[0])
    before = copy.deepcopy(updater.state_dict())
    with pytest.raises(NotFinite, match="update 1: grad_norm/critic not finite"):
        updater.step(batches[1])
    assert_equal(updater.state_dict(), before)
