from __future__ import annotations

import numpy as np

from ccwm.envs.change import Change
from ccwm.studies.agents import play

from .trained_agent import small_agent


def test_an_agent_plays_in_the_environment_of_its_training_an_episode_a_seed():
    agent = small_agent()
    first, second, again = (played.episode for played in play(agent, [0, 1, 0]))
    assert first.observation.shape == (31, 32, 32, 3)  # the reset, and 60 frames, two for each action
    assert np.array_equal(first.observation, again.observation)
    assert not np.array_equal(first.observation, second.observation)


def test_exploring_is_not_greedy():
    agent = small_agent()
    (greedy,), (exploring,) = play(agent, [0]), play(agent, [0], exploration=0.3)
    assert not np.array_equal(greedy.episode.action, exploring.episode.action)


def test_a_changed_environment_changes_the_return():
    agent = small_agent()
    (own,), (changed,) = (play(agent, [0], change=Change(reward=reward)) for reward in (1.0, 4.0))
    assert abs(changed.total - 4 * own.total) < 1e-4 * abs(changed.total)
