"""What retracing and truncation ask of whatever acts on the latent states."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Greedy(Protocol):
    """A policy on latent states."""

    def greedy(self, feature: Tensor) -> Tensor:
        """The mode's action: [N, F] → [N, A] in (−1, 1)."""


class Control(Greedy, Protocol):
    """A policy on latent states, and what it expects of each."""

    def value(self, feature: Tensor) -> Tensor:
        """V: [..., F] → [...]."""
