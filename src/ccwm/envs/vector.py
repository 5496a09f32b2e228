"""Environments in step behind gymnasium's vector interface, wherever each of them runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

World = gymnasium.Env[np.ndarray, np.ndarray]


class Answer(NamedTuple):
    """What an environment gave back, to a reset or to a step."""

    image: np.ndarray
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = {}  # noqa: RUF012 - never written to


class Lane(Protocol):
    """One environment that is asked now and answers when waited for, so that several can work at the same time."""

    @property
    def observation_space(self) -> gymnasium.spaces.Space[Any]:
        """What it shows."""

    @property
    def action_space(self) -> gymnasium.spaces.Space[Any]:
        """What it takes."""

    def ask_reset(self, seed: int) -> None:
        """Have an episode begun."""

    def ask_step(self, action: np.ndarray) -> None:
        """Have an action [A] taken."""

    def wait(self) -> Answer:
        """The answer to what was asked last."""

    def close(self) -> None:
        """Give back what it holds."""


class LocalLane:
    """An environment of this process: it works while it is asked."""

    def __init__(self, env: World) -> None:
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self._answer: Answer | None = None

    def ask_reset(self, seed: int) -> None:
        """Begin an episode."""
        image, info = self.env.reset(seed=seed)
        self._answer = Answer(image, info=info)

    def ask_step(self, action: np.ndarray) -> None:
        """Take an action [A]."""
        image, reward, terminated, truncated, info = self.env.step(action)
        self._answer = Answer(image, float(reward), terminated, truncated, info)

    def wait(self) -> Answer:
        """The answer to what was asked last."""
        assert self._answer is not None, "nothing was asked"
        return self._answer

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


class LaneEnvs(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """N environments in step; one whose episode is over waits, with its last image and no reward, for the next reset.

    Each environment's episode is a function of its own seed and actions: neither the number nor the order of the
    others has a part in it.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012 - gymnasium declares it so

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes, self.num_envs = lanes, len(lanes)
        self.single_observation_space, self.single_action_space = lanes[0].observation_space, lanes[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        shape = self.single_observation_space.shape
        assert shape is not None
        self._nothing = Answer(np.zeros(shape, np.uint8), truncated=True)
        self._answers = [self._nothing] * self.num_envs

    def reset(  # type: ignore[override]  # gymnasium's own vector environments take a list too
        self, *, seed: int | Sequence[int], options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode from each seed, in the first environments; fewer seeds leave the others waiting.

        → images [N, size, size, 3] and infos.
        """
        seeds = range(seed, seed + self.num_envs) if isinstance(seed, int) else seed
        if not 0 < len(seeds) <= self.num_envs:
            raise ValueError(f"{self.num_envs} environments take as many seeds at most, and one at least: {seeds}")
        active = self.lanes[: len(seeds)]
        for lane, own in zip(active, seeds, strict=True):
            lane.ask_reset(own)
        self._answers = [*(lane.wait() for lane in active), *[self._nothing] * (self.num_envs - len(seeds))]
        return self._images(), self._infos()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take the actions [N, A] of all whose episode goes on.   → images, rewards, terminated, truncated, infos."""
        active = [index for index, last in enumerate(self._answers) if not (last.terminated or last.truncated)]
        for index in active:
            self.lanes[index].ask_step(actions[index])
        self._answers = [last._replace(reward=0.0, info={}) for last in self._answers]
        for index in active:
            self._answers[index] = self.lanes[index].wait()
        return (
            self._images(),
            np.array([answer.reward for answer in self._answers]),
            np.array([answer.terminated for answer in self._answers]),
            np.array([answer.truncated for answer in self._answers]),
            self._infos(),
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Close every environment."""
        for lane in self.lanes:
            lane.close()

    def __del__(self) -> None:
        """Do not close, as gymnasium would: the environments may be needed for longer than this view of them."""

    def _images(self) -> np.ndarray:
        return np.stack([answer.image for answer in self._answers])

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for index, answer in enumerate(self._answers):
            infos = self._add_info(infos, answer.info, index)
        return infos
