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


class ActionRange:
    """A simulator's own bounds of its actions; where one of the two is missing they are ±1."""

    def __init__(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        bounded = np.isfinite(low) & np.isfinite(high)
        self._low: NDArray[np.float64] = np.where(bounded, low, -1.0).astype(np.float64)
        self._span: NDArray[np.float64] = np.where(bounded, high, 1.0) - self._low

    def scale(self, action: Vector) -> NDArray[np.float64]:
        """low + (action + 1) / 2 · (high − low), from [-1, 1] to these bounds."""
        scaled: NDArray[np.float64] = self._low + (action.astype(np.float64) + 1) / 2 * self._span
        return scaled


def component_names(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """The names of an array's entries in their flat order: `velocity[3]`, `grid[0,2]`; a scalar keeps its own."""
    return tuple(f"{name}[{','.join(map(str, index))}]" if index else name for index in np.ndindex(shape))


class World(Protocol):
    """A simulator that advances by frames and renders only on request."""

    action_size: int

    @property
    def observation_names(self) -> tuple[str, ...]:
        """What each component of the state is called; known before the first episode."""

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
