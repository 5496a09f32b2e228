"""What a transfer world changes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

PHYSICAL = ("mass", "friction", "stiffness", "damping", "gravity")


@dataclass(frozen=True)
class Change:
    """How a world differs from its own self; None leaves a thing alone.

    With ``units="factor"`` each physical value multiplies what the world has; with ``"absolute"`` it replaces it.
    """

    reward: float = 1.0
    """Factor of every reward, whatever the units."""
    mass: float | None = None
    """Total mass (kg)."""
    friction: tuple[float, float, float] | None = None
    """Sliding, torsional and rolling friction."""
    stiffness: float | None = None
    """Joint stiffness."""
    damping: float | None = None
    """Joint damping."""
    gravity: float | None = None
    """Gravity (m/s², downwards)."""
    layout: str | None = None
    """The maze layout to move to."""
    units: Literal["factor", "absolute"] = "factor"

    @property
    def physical(self) -> bool:
        """Whether the physics itself changes, so that a model must be rebuilt."""
        return any(getattr(self, name) is not None for name in PHYSICAL)

    def refuse_all_but(self, *allowed: str, world: str) -> None:
        """Raise ValueError if anything but the reward and the allowed fields is changed."""
        for field in fields(self):
            if field.name in ("reward", "units", *allowed) or getattr(self, field.name) is None:
                continue
            can = ", ".join(("reward", *allowed))
            raise ValueError(f"{world} has no {field.name} to change; a transfer there can change: {can}")


UNCHANGED = Change()
