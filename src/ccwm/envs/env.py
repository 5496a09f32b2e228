"""The one environment class: action checks, action repeat, time limit and reward factor around any world."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ccwm.envs.world import Image, Outcome, Vector, World
from ccwm.settings.agent import Env

Observation = NDArray[np.uint8] | NDArray[np.float32]
"""Pixels [size, size, 3], or a state [n]."""


class TaskEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A world with actions [A] in [-1, 1]; ``observation_space`` says what ``config.observation`` shows of it.

    `pixels` are uint8 [size, size, 3]; a `state` is float32 [n], finite, and nothing is rendered unless asked for.
    ``info["frames"]`` counts the simulator frames of the step, ``info["irreversible"]`` is true where the state before
    the step cannot be regained, and ``info["success"]`` exists where the world has a goal.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - gymnasium declares it so

    def __init__(self, world: World, config: Env, *, reward_factor: float = 1.0) -> None:
        self.world, self.config, self.reward_factor = world, config, reward_factor
        self.render_mode = "rgb_array"
        self.observation_names = world.observation_names if config.observation == "state" else ()
        """What each component of a state is called; pixels have no names."""
        self.observation_space = (
            gymnasium.spaces.Box(-np.inf, np.inf, (len(self.observation_names),), np.float32)
            if config.observation == "state"
            else gymnasium.spaces.Box(0, 255, (config.size, config.size, 3), np.uint8)
        )
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (world.action_size,), np.float32)
        self.action_size = world.action_size
        self._image: Image | None = None  # of the present state, once it was rendered
        self._frame, self._over = 0, True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; the same seed and actions give the same observations, in another process too."""
        super().reset(seed=seed)
        self.world.reset(seed)
        self._frame, self._over, self._image = 0, False, None
        return self._observe(), {"irreversible": False, "frames": 0}

    def step(self, action: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play ``action_repeat`` frames, fewer at an episode's end; rewards add up."""
        if self._over:
            raise gymnasium.error.ResetNeeded("this episode is over: call reset() first")
        checked = self._check(action)
        reward, frames, irreversible = 0.0, 0, False
        outcome = Outcome(0.0)
        while frames < self.config.action_repeat and not self._over:
            outcome = self.world.advance(checked)
            if not math.isfinite(outcome.reward):
                raise ValueError(f"the world gave a reward of {outcome.reward} at frame {self._frame}")
            reward += self.reward_factor * outcome.reward
            irreversible |= outcome.irreversible
            frames += 1
            self._frame += 1
            self._over = outcome.terminated or outcome.truncated or self._frame >= self.config.time_limit
        self._image = None
        info: dict[str, Any] = {"irreversible": irreversible, "frames": frames}
        if outcome.success is not None:
            info["success"] = outcome.success
        truncated = self._over and not outcome.terminated
        return self._observe(), reward, outcome.terminated, truncated, info

    def render(self) -> Image:
        """The picture of the present state, [size, size, 3]; render is expensive, so each state is rendered once."""
        if self._image is None:
            self._image = self.world.render()
        return self._image

    def state(self) -> Vector:
        """The present state as one flat vector."""
        return self.world.state()

    def close(self) -> None:
        """Free windows and GL contexts."""
        self.world.close()

    def _observe(self) -> Observation:
        if self.config.observation == "pixels":
            return self.render()
        vector = self.world.state()
        finite = np.isfinite(vector)
        if not finite.all():
            wrong = ", ".join(
                f"{self.observation_names[index]} is {vector[index]}" for index in np.flatnonzero(~finite)
            )
            raise ValueError(f"the world gave a state that is not finite at frame {self._frame}: {wrong}")
        return vector

    def _check(self, action: NDArray[Any]) -> Vector:
        values = np.asarray(action, np.float32)
        if values.shape != self.action_space.shape:
            raise ValueError(f"the action has shape {values.shape}, this world takes {self.action_space.shape}")
        if not (np.abs(values) <= 1).all():  # false for NaN too
            raise ValueError(f"the action {values} has entries that are NaN or outside [-1, 1]")
        return values
