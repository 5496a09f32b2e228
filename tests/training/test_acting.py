"""Playing episodes: how steps are aligned, and that environments in step do not disturb each other."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from ccwm.agents.policy import RandomPolicy
from ccwm.envs.factory import make_env
from ccwm.structs import Episode
from ccwm.training.rollouts import play


class Counting(gymnasium.Env[np.ndarray, np.ndarray]):
    """Image and reward tell the action that led to them; two frames a step."""

    observation_space = gymnasium.spaces.Box(0, 255, (4, 4, 3), np.uint8)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, steps: int, *, terminates: bool = False) -> None:
        self.steps, self.terminates, self.taken = steps, terminates, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        self.taken = 0
        return np.zeros((4, 4, 3), np.uint8), {"frames": 0, "irreversible": False}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.taken += 1
        assert self.taken <= self.steps, "stepped after its end"
        last = self.taken == self.steps
        info = {"frames": 2, "irreversible": last, "success": last}
        image = np.full((4, 4, 3), round(100 * action[0]), np.uint8)
        return image, float(10 * action[0]), last and self.terminates, last and not self.terminates, info


class Rising:
    """Acts 0.1, 0.2, 0.3 … in every environment."""

    def reset(self, seeds: list[int]) -> None:
        self.step = 0

    def act(self, image: np.ndarray) -> np.ndarray:
        self.step += 1
        return np.full((len(image), 2), self.step / 10, np.float32)


def test_action_t_led_to_image_t_and_reward_t() -> None:
    (played,) = play([Counting(3)], Rising(), [0])
    episode = played.episode
    assert episode.action[:, 0].tolist() == pytest.approx([0, 0.1, 0.2, 0.3])
    assert episode.observation[:, 0, 0, 0].tolist() == [0, 10, 20, 30]
    assert episode.reward.tolist() == pytest.approx([0, 1, 2, 3])
    assert episode.is_first.tolist() == [True, False, False, False]
    assert episode.irreversible.tolist() == [False, False, False, True]
    assert played.frames == 6
    assert played.total == pytest.approx(6)
    assert played.success is True


@pytest.mark.parametrize(("terminates", "last"), [(True, 0.0), (False, 1.0)])
def test_continues_is_0_only_on_termination(terminates: bool, last: float) -> None:
    (played,) = play([Counting(2, terminates=terminates)], Rising(), [0])
    assert played.episode.continues.tolist() == [1.0, 1.0, last]


def test_an_environment_that_has_ended_waits_for_the_others() -> None:
    short, long = play([Counting(1), Counting(3)], Rising(), [0, 1])
    assert len(short.episode.reward) == 2
    assert long.episode.reward.tolist() == pytest.approx([0, 1, 2, 3])


def test_environments_in_step_play_what_each_plays_alone() -> None:
    worlds = [make_env("maze_two_rooms", size=32, action_repeat=2, time_limit=limit) for limit in (20, 30)]
    seeds = [5, 6]
    together = play(worlds, RandomPolicy(2), seeds)
    for world, seed, played in zip(worlds, seeds, together, strict=True):
        (alone,) = play([world], RandomPolicy(2), [seed])
        assert alone.frames == played.frames
        for name in Episode._fields:
            np.testing.assert_array_equal(getattr(alone.episode, name), getattr(played.episode, name), name)
    first, second = (played.episode.action[1:11] for played in together)
    assert (first != second).any()


def test_what_between_raises_abandons_the_episode() -> None:
    env = Counting(5)

    def stop_before_the_third() -> None:
        if env.taken == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        play([env], Rising(), [0], between=stop_before_the_third)
    assert env.taken == 2
