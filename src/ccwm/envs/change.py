"""What a transfer changes in a world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ccwm.errors import UserError

PHYSICAL = ("mass", "friction", "stiffness", "damping", "gravity")


@dataclass(frozen=True)
class Change:
    """How a world differs from its original; None leaves a value alone.

    With ``units="factor"`` each physical value multiplies what the world has; with ``"absolute"`` it replaces it.
    """

    reward: float = 1.0
    """Factor of every reward, for both units."""
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

    def allow_only(self, *allowed: str, task: str) -> None:
        """Raise UserError if anything but the reward and the allowed fields is changed."""
        for name in (*PHYSICAL, "layout"):
            if name not in allowed and getattr(self, name) is not None:
                can = ", ".join(("reward", *allowed))
                raise UserError(f"{task} has no {name} to change", hint=f"a transfer there can change {can}")


UNCHANGED = Change()
