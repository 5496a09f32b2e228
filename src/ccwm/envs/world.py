"""What a world must offer, one simulator frame at a time; ``TaskEnv`` makes an environment of it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
"""[size, size, 3]"""
Vector = NDArray[np.float32]


class Outcome(NamedTuple):
    """What one simulator frame brought."""

    reward: float
    terminated: bool = False
    truncated: bool = False
    irreversible: bool = False
    """The state before this frame cannot be regained."""
    success: bool | None = None
    """The goal was reached at some time in this episode; None where the world has no goal."""


def scale_action(action: Vector, low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.float64]:
    """low + (action + 1) / 2 · (high − low), from [-1, 1] to a simulator's bounds; without a bound they are ±1."""
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    scaled: NDArray[np.float64] = low + (action.astype(np.float64) + 1) / 2 * (high - low)
    return scaled


class World(Protocol):
    """A simulator that advances by frames and renders only on request."""

    action_size: int

    def reset(self, seed: int | None) -> None:
        """Start an episode, from the seed or from where the random stream stands."""

    def advance(self, action: Vector) -> Outcome:
        """Play one frame with an action [A] in [-1, 1]."""

    def render(self) -> Image:
        """The picture of the present state, [size, size, 3]."""

    def state(self) -> Vector:
        """The present state as one flat vector."""

    def close(self) -> None:
        """Free windows and GL contexts."""
