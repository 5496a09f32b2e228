"""The one interface by which random, exploring and greedy actor_critic act, and the random one."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ccwm.seeds import named_seed


class Policy(Protocol):
    """Whatever can act in a batch of environments."""

    def reset(self, seeds: list[int]) -> None:
        """Begin an episode in each of B environments; a row's randomness is a function of its seed alone."""

    def act(self, image: np.ndarray) -> np.ndarray:
        """uint8 [B, size, size, 3] → float32 [B, A] in [−1, 1]."""


class RandomPolicy:
    """Uniform actions."""

    def __init__(self, actions: int) -> None:
        self.actions = actions
        self.streams: list[np.random.Generator] = []

    def reset(self, seeds: list[int]) -> None:
        """Begin an episode in each environment."""
        self.streams = [np.random.default_rng(named_seed("random", seed)) for seed in seeds]

    def act(self, image: np.ndarray) -> np.ndarray:
        """uint8 [B, size, size, 3] → float32 [B, A] in [−1, 1]."""
        return np.stack([stream.uniform(-1, 1, self.actions) for stream in self.streams]).astype(np.float32)
