from __future__ import annotations

import numpy as np
import pytest
import torch

from ccwm.episode import Episode
from ccwm.studies.trajectories import exploring_episodes, see

from .trained_agent import random_episode, small_agent


@pytest.fixture(scope="module")
def episode() -> Episode:
    """A random episode of 31 steps behind one-way doors, with one crossing put into it."""
    played = random_episode(small_agent(task="maze_one_way"), 3)
    return played._replace(irreversible=np.arange(31) == 20)


def test_states_are_those_of_the_policy_and_are_retraced_from_the_next(episode: Episode):
    agent = small_agent()
    seen = see(agent, episode)
    assert seen.states.shape == (31, 12)
    assert seen.retraced is not None
    assert seen.retraced.shape == (30, 12)
    assert seen.value.shape == (31,)
    policy = agent.policy()
    for t in range(3):
        policy.act(episode.observation[t])
        policy.action = torch.from_numpy(episode.action[t + 1][None])  # what the episode did, not what it would do
    assert policy.state is not None
    assert torch.allclose(policy.state.feature[0], seen.states[2], atol=1e-6)
    # ž_2 by hand: ρ(z̃_3, z̃_2), then one step of the prior from z̃_3
    rssm, later, earlier = agent.learner.world_model.rssm, seen.states[3:4], seen.states[2:3]
    with torch.no_grad():
        action = agent.learner.retracing.reverse(later, earlier)
        deter = rssm.advance(later[:, rssm.stoch :], later[:, : rssm.stoch], action)
        by_hand = torch.cat([rssm.prior(deter).mean, deter], -1)
    assert torch.allclose(by_hand[0], seen.retraced[2], atol=1e-6)
    assert torch.allclose(agent.learner.actor_critic.critic(seen.states).mean, seen.value, atol=1e-6)


def test_dreamer_is_seen_without_retracing(episode: Episode):
    assert see(small_agent(retrace_weight=0.0), episode).retraced is None


def test_new_episodes_are_a_function_of_agent_and_seed():
    agent, told = small_agent(), []
    first = exploring_episodes(agent, episodes=2, seed=0, advance=lambda: told.append(1))
    again = exploring_episodes(agent, episodes=2, seed=0, advance=lambda: None)
    assert len(told) == 2
    assert all(np.array_equal(a.action, b.action) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0].action, first[1].action)
