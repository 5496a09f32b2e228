"""Playing whole episodes, several environments in step with one batched policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from ccwm.agent.policy import Policy
from ccwm.structs import Episode

World = gymnasium.Env[np.ndarray, np.ndarray]


class Played(NamedTuple):
    """An episode, the simulator frames that it took, and whether its goal was reached (None where there is none)."""

    episode: Episode
    frames: int
    success: bool | None

    @property
    def total(self) -> float:
        """The episode's return."""
        return float(self.episode.reward.sum(dtype=np.float64))


class _Recorder:
    """Collects the steps of one environment's episode."""

    def __init__(self, env: World, seed: int) -> None:
        self.env = env
        self.image, info = env.reset(seed=seed)
        actions = env.action_space.shape
        assert actions is not None
        self.frames = 0
        self.success: bool | None = info.get("success")
        self.done = False
        self.rows: list[tuple[Any, ...]] = [(self.image, np.zeros(actions, np.float32), 0.0, True, 1.0, False)]

    def step(self, action: np.ndarray) -> None:
        self.image, reward, terminated, truncated, info = self.env.step(action)
        self.frames += info["frames"]
        self.success = info.get("success")
        self.done = terminated or truncated
        self.rows.append((self.image, action, reward, False, float(not terminated), info["irreversible"]))

    def played(self) -> Played:
        image, action, reward, is_first, continues, irreversible = zip(*self.rows, strict=True)
        episode = Episode(
            image=np.stack(image),
            action=np.stack(action).astype(np.float32),
            reward=np.array(reward, np.float32),
            is_first=np.array(is_first, bool),
            continues=np.array(continues, np.float32),
            irreversible=np.array(irreversible, bool),
        )
        return Played(episode, self.frames, self.success)


def play(
    envs: Sequence[World], policy: Policy, seeds: Sequence[int], *, between: Callable[[], None] = lambda: None
) -> list[Played]:
    """One whole episode in each environment, a function of the policy and the seeds alone.

    ``between`` is called before every step; what it raises abandons the episodes.
    """
    policy.reset(list(seeds))
    recorders = [_Recorder(env, seed) for env, seed in zip(envs, seeds, strict=True)]
    while not all(recorder.done for recorder in recorders):
        between()
        # Rows that have ended keep their last image; their actions are not taken.
        actions = policy.act(np.stack([recorder.image for recorder in recorders]))
        for recorder, action in zip(recorders, actions, strict=True):
            if not recorder.done:
                recorder.step(action)
    return [recorder.played() for recorder in recorders]
