"""What a world must offer, one simulator frame at a time; ``Env`` makes an environment of it."""

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


class ActionRange:
    """Maps actions in [-1, 1] to a simulator's own bounds; a side without a bound counts as ±1."""

    def __init__(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        unbounded = ~(np.isfinite(low) & np.isfinite(high))
        self._low = np.where(unbounded, -1.0, low)
        self._width = np.where(unbounded, 1.0, high) - self._low

    def scale(self, action: Vector) -> NDArray[np.float64]:
        """low + (action + 1) / 2 · (high − low), of the same shape."""
        scaled: NDArray[np.float64] = self._low + (action.astype(np.float64) + 1) / 2 * self._width
        return scaled


class World(Protocol):
    """A simulator that advances by frames and draws itself only when asked to."""

    action_size: int

    def reset(self, seed: int | None) -> None:
        """Start an episode, from the seed or from where the random stream stands."""

    def advance(self, action: Vector) -> Outcome:
        """Play one frame with an action [A] in [-1, 1]."""

    def draw(self) -> Image:
        """The picture of the present state, [size, size, 3]."""

    def state(self) -> Vector:
        """The present state as one flat vector."""

    def close(self) -> None:
        """Give back windows and GL contexts."""
