"""A world that is fine for two episodes; from then on its rewards are finite, but their squares are not."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Unbounded(gymnasium.Env[np.ndarray, np.ndarray]):
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self) -> None:
        self.episodes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        self.episodes += 1
        return np.zeros(2, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return np.zeros(2, np.float32), 1.0 if self.episodes <= 2 else 1e30, False, False, {}

    def render(self) -> np.ndarray:
        return np.full((32, 32, 3), 10 * self.episodes, np.uint8)
