from __future__ import annotations

from contextlib import closing

from ccwm.envs.change import Change
from ccwm.studies.agents import agent_env, greedy_episode

from .trained_agent import small_agent


def test_an_agents_environment_is_observed_as_in_training():
    agent = small_agent()
    with closing(agent_env(agent)) as own, closing(agent_env(agent, task="maze_one_way")) as other:
        assert own.observation_space.shape == other.observation_space.shape == (32, 32, 3)
        assert len(greedy_episode(agent, own, 0).episode.reward) == 31  # 60 frames, two for each action


def test_a_changed_environment_changes_the_return():
    agent = small_agent()
    totals = []
    for reward in (1.0, 4.0):
        with closing(agent_env(agent, Change(reward=reward))) as env:
            totals.append(greedy_episode(agent, env, 0).total)
    assert abs(totals[1] - 4 * totals[0]) < 1e-4 * abs(totals[1])
