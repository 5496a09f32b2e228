"""The interface by which random, exploring and greedy policies act, and the random policy."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ccwm.seeds import named_seed


class Policy(Protocol):
    """Acts in one environment."""

    def reset(self, seed: int) -> None:
        """Start an episode; all randomness in it is a function of the seed."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        """[*observation] → float32 [A] in [−1, 1]."""


class RandomPolicy:
    """Uniform actions."""

    def __init__(self, action_size: int) -> None:
        self.action_size = action_size
        self.rng = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        """Start an episode."""
        self.rng = np.random.default_rng(named_seed("random", seed))

    def act(self, observation: np.ndarray) -> np.ndarray:
        """[*observation] → float32 [A], uniform in [−1, 1]."""
        return self.rng.uniform(-1, 1, self.action_size).astype(np.float32)
