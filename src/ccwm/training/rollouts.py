"""Playing whole episodes, several environments in step with one batched policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ccwm.agents.policy import Policy
from ccwm.envs.vector import LaneEnvs, LocalLane, World
from ccwm.structs import Episode


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

    def __init__(self, image: np.ndarray, actions: tuple[int, ...]) -> None:
        self.frames = 0
        self.success: bool | None = None
        self.done = False
        self.rows: list[tuple[Any, ...]] = [(image, np.zeros(actions, np.float32), 0.0, True, 1.0, False)]

    def add(
        self, image: np.ndarray, action: np.ndarray, reward: float, terminated: bool, truncated: bool, info: Any
    ) -> None:
        self.frames += int(info["frames"])
        self.success = bool(info["success"]) if "success" in info else None
        self.done = terminated or truncated
        self.rows.append((image, action, reward, False, float(not terminated), info["irreversible"]))

    def played(self) -> Played:
        image, action, reward, is_first, continues, irreversible = zip(*self.rows, strict=True)
        episode = Episode(
            observation=np.stack(image),
            action=np.stack(action).astype(np.float32),
            reward=np.array(reward, np.float32),
            is_first=np.array(is_first, bool),
            continues=np.array(continues, np.float32),
            irreversible=np.array(irreversible, bool),
        )
        return Played(episode, self.frames, self.success)


def play(
    envs: LaneEnvs | Sequence[World],
    policy: Policy,
    seeds: Sequence[int],
    *,
    between: Callable[[], None] = lambda: None,
) -> list[Played]:
    """One whole episode from each seed, a function of the policy and the seeds alone: not of how many play in step.

    ``envs`` are at least as many environments as seeds. ``between`` is called before every step; what it raises
    abandons the episodes.
    """
    lanes = envs if isinstance(envs, LaneEnvs) else LaneEnvs([LocalLane(env) for env in envs])
    actions_taken = lanes.single_action_space.shape
    assert actions_taken is not None
    policy.reset(list(seeds))
    images, _ = lanes.reset(seed=seeds)
    recorders = [_Recorder(image, actions_taken) for image in images[: len(seeds)]]
    while not all(recorder.done for recorder in recorders):
        between()
        # Rows that have ended keep their last image; their actions are not taken.
        actions = policy.act(images[: len(seeds)])
        images, rewards, terminated, truncated, infos = lanes.step(actions)
        for row, recorder in enumerate(recorders):
            if not recorder.done:
                info = {key: infos[key][row] for key in ("frames", "irreversible", "success") if key in infos}
                recorder.add(images[row], actions[row], rewards[row], terminated[row], truncated[row], info)
    return [recorder.played() for recorder in recorders]
