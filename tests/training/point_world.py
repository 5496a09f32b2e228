"""A point on a line that begins anywhere and is rewarded at its right end; its state is all that there is to see."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

GOAL, SPEED = 1.0, 0.2


class Point(gymnasium.Env[np.ndarray, np.ndarray]):
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        super().reset(seed=seed)
        self.place, self.moved = float(self.np_random.uniform(-0.9, 0.9)), 0.0
        return self._state(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        before = self.place
        self.place = float(np.clip(before + SPEED * action[0], -1, 1))
        self.moved = self.place - before
        return self._state(), float(np.exp(-8 * (self.place - GOAL) ** 2)), False, False, {}

    def _state(self) -> np.ndarray:
        return np.array([self.place, self.moved], np.float32)
