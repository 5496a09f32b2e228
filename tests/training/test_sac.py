"""SAC's update: the target by hand, what it moves, and that it resumes to the bit."""

from __future__ import annotations

import lightning as L
import pytest
import torch
from tiny_learner import ACTIONS, NUMBERS, assert_equal, random_batch
from tiny_sac import flatten, tiny_sac

from ccwm.agents.sac import SACLearner
from ccwm.structs import Batch
from ccwm.training.finite import NotFinite
from ccwm.training.module import AgentModule
from ccwm.training.sac import SACUpdater, transitions
from ccwm.training.update import Updater


def updater_of(seed: int = 0, **changes: object) -> SACUpdater:
    return SACUpdater(L.Fabric(accelerator="cpu", devices=1), AgentModule(tiny_sac(**changes), seed=seed))


def batches(count: int) -> list[Batch]:
    return [random_batch(2, 4, seed=seed, robust=True) for seed in range(count)]


def updated(updater: SACUpdater, given: list[Batch]) -> SACUpdater:
    for batch in given:
        updater.step(batch)
    return updater


def test_a_transition_is_two_steps_and_a_time_limit_is_not_done() -> None:
    batch = random_batch(2, 2, robust=True)
    batch = batch._replace(
        continues=torch.tensor([[1.0, 1.0], [1.0, 0.0]]), reward=torch.tensor([[9.0, 9.0], [1.0, 2.0]])
    )
    found = transitions(batch, batch.observation)
    assert_equal(found.observations, batch.observation[0])
    assert_equal(found.next_observations, batch.observation[1])
    assert_equal(found.actions, batch.action[1])  # the action that led to the second observation
    assert_equal(found.rewards, torch.tensor([[1.0], [2.0]]))
    assert_equal(found.dones, torch.tensor([[0.0], [1.0]]))


def test_the_target_by_hand() -> None:
    """y = r + γ (1 − done) (min Q' − α log π): critics of 0, slow ones of 2 and 3, α = e⁻¹⁰⁰, γ = 1/2, r = 1."""
    updater = updater_of(sac={"discount": 0.5})
    networks = updater.soft_step.algorithm.learner.networks
    flatten(networks.critic)
    flatten(networks.critic_target, (networks.critic_target.q_networks[0][-1], [2.0]),
            (networks.critic_target.q_networks[1][-1], [3.0]))  # fmt: skip
    with torch.no_grad():
        updater.soft_step.algorithm.learner.log_temperature.fill_(-100.0)
    batch = random_batch(2, 2, robust=True)
    batch = batch._replace(continues=torch.tensor([[1.0, 1.0], [1.0, 0.0]]), reward=torch.ones(2, 2))
    updater.step(batch)
    averages = updater.averages()
    # Targets 1 + 1/2 · 2 = 2 and, where it is done, 1. Loss 1/2 · Σ over two critics of (2² + 1²) / 2.
    assert averages["critic/loss"] == pytest.approx(2.5)
    assert averages["temperature/alpha"] == pytest.approx(0.0, abs=1e-30)


def test_the_temperatures_loss_by_hand() -> None:
    """−log α (log π + target entropy), with log α = 2 and a target entropy of −A."""
    updater = updater_of()
    learner = updater.soft_step.algorithm.learner
    flatten(learner.networks.actor)  # N(0, 1) before the tanh
    with torch.no_grad():
        learner.log_temperature.fill_(2.0)
    drawn: list[torch.Tensor] = []
    own = learner.networks.actor.action_log_prob

    def recorded(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found: tuple[torch.Tensor, torch.Tensor] = own(states)
        drawn.append(found[1].detach())
        return found

    learner.networks.actor.action_log_prob = recorded  # type: ignore[method-assign]
    updater.step(batches(1)[0])
    wanted = -2.0 * (float(drawn[0].mean()) - ACTIONS)
    assert updater.averages()["temperature/loss"] == pytest.approx(wanted, rel=1e-5)


def test_an_update_moves_actor_critics_and_temperature_and_the_slow_critics_follow() -> None:
    updater = updater_of(sac={"tau": 0.25})
    learner = updater.module.learner
    assert isinstance(learner, SACLearner)
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    updater.step(batches(1)[0])
    after = learner.state_dict()
    assert all(not torch.equal(after[name], before[name]) for name in before if not name.endswith("log_std.weight"))
    for name in learner.networks.critic.state_dict():
        slow, fast = before[f"networks.critic_target.{name}"], after[f"networks.critic.{name}"]
        torch.testing.assert_close(after[f"networks.critic_target.{name}"], 0.75 * slow + 0.25 * fast)


def test_an_update_is_a_function_of_seed_and_number_and_leaves_no_trace() -> None:
    def weights(updater: Updater) -> torch.Tensor:
        return torch.cat([value.flatten() for value in updater.module.learner.state_dict().values()])

    one, other, third = updater_of(), updater_of(), updater_of(seed=1)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    updated(one, batches(1))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    updated(other, batches(1))
    updated(third, batches(1))
    assert torch.equal(weights(one), weights(other))
    assert not torch.equal(weights(one), weights(third))


def test_a_resumed_updater_does_not_differ_in_a_bit() -> None:
    given = batches(4)
    whole, first = updated(updater_of(), given), updated(updater_of(), given[:2])
    resumed = updater_of(seed=0)
    resumed.load_state_dict(first.state_dict())
    updated(resumed, given[2:])
    assert_equal(resumed.module.learner.state_dict(), whole.module.learner.state_dict())
    assert_equal(resumed.optimizer_state(), whole.optimizer_state())
    assert resumed.averages() == whole.averages()
    assert resumed.module.counters == whole.module.counters


def test_a_number_that_is_not_finite_ends_training_by_name() -> None:
    batch = batches(1)[0]
    with pytest.raises(NotFinite, match=r"update 0: critic/loss, .* not finite") as error:
        updater_of().step(batch._replace(reward=torch.full((2, 4), torch.nan)))
    assert "sac.learning_rate" in str(error.value.hint)


def test_weights_that_are_not_finite_are_not_saved() -> None:
    updater = updated(updater_of(), batches(1))
    with torch.no_grad():
        updater.module.learner.networks.actor.mu.bias[0] = torch.inf  # type: ignore[union-attr, operator, index]
    with pytest.raises(NotFinite, match=r"networks\.actor\.mu\.bias not finite"):
        updater.state_dict()


def test_it_learns_a_bandit() -> None:
    """Reward 1 − a₀² + a₁, done at once: the actor's mode goes to (0, 1)."""
    updater = updater_of(sac={"learning_rate": 0.01, "units": 32})
    generator = torch.Generator().manual_seed(0)
    for _ in range(400):
        action = torch.rand(2, 64, ACTIONS, generator=generator) * 2 - 1
        batch = random_batch(2, 64, robust=True)._replace(
            observation=torch.zeros(2, 64, NUMBERS), action=action, continues=torch.zeros(2, 64)
        )
        updater.step(batch._replace(reward=1 - 4 * action[..., 0] ** 2 + 4 * action[..., 1]))
    found = updater.module.learner.policy().act(torch.zeros(NUMBERS).numpy())
    assert found[0] == pytest.approx(0.0, abs=0.15)
    assert found[1] > 0.8
