"""How far a number may be from the committed one on another machine, and why; on its own machine it may not at all."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

SHORT = 100
"""Updates within which rounding has not yet grown into another agent."""


@dataclass(frozen=True)
class Tolerance:
    """|new − committed| ≤ absolute + relative · |committed|; None compares nothing."""

    name: str
    relative: float | None
    absolute: float
    reason: str

    def allows(self, committed: float | str | None, new: float | str | None) -> bool:
        """Whether the new value may stand for the committed one; text and what was not measured must be the same."""
        if self.relative is None or committed == new:
            return True
        if not isinstance(committed, float) or not isinstance(new, float):
            return False
        return abs(new - committed) <= self.absolute + self.relative * abs(committed)


EXACT = Tolerance("exact", 0, 0, "counts, seeds and schedules: whole numbers that no rounding reaches")
WORLD = Tolerance("world", 1e-5, 1e-9, "no learned weight is in it, only the simulator's own libm and renderer")
EARLY = Tolerance(
    "early",
    1e-3,
    1e-6,
    f"learned in at most {SHORT} updates: with AVX2 and SSE instead of AVX-512 it moved by less than 1e-6 of itself; "
    "another seed, or half the weight of retracing, moved a return by more than 1e-2",
)
STEP = Tolerance("step", 1e-3, 1, "a step at which one error passes another: rounding may shift it by one")
LATE = Tolerance(
    "late",
    0.5,
    0.05,
    f"learned in more than {SHORT} updates: rounding has grown into another agent of the same kind, as another seed "
    "is; this only tells an agent that has learned from one that has not",
)
FREE = Tolerance("free", None, 0, f"single episodes, spreads, and losses after update {SHORT}, of another agent")

COUNTS = "updates", "seed", "episode", "episodes", "heldout", "n", "draw", "context", "horizon", "step", "best_possible"
RULES: tuple[tuple[str, Tolerance, Tolerance], ...] = (
    ("train/metrics.json:/episodes", EARLY, LATE),  # as many as the agent's own lengths leave room for
    *((f"*:*[./]{name}", EXACT, EXACT) for name in COUNTS),
    ("collect/*", WORLD, WORLD),
    ("evaluate/metrics.json:/random_*", WORLD, WORLD),
    ("rollout-viz/*:/baseline_error*", WORLD, WORLD),
    ("rollout-viz/*:/constant_error*", WORLD, WORLD),
    ("rollout-viz/metrics.json:/useful_steps_*", STEP, FREE),
    ("rollout-viz/metrics.json:/informed_steps_*", STEP, FREE),
    ("*/metrics.json:*_sd", EARLY, FREE),
    ("*/metrics.json:*.sd", EARLY, FREE),
    ("*/metrics.json:*", EARLY, LATE),
    ("*.csv:*", EARLY, FREE),
)
"""`stage/file:/key` → its tolerance after few updates, and after many."""


def tolerance(file: str, key: str, *, updates: float) -> Tolerance:
    """The first rule that fits ``key`` of a file, named as `stage/file`, after this many updates."""
    name = f"{file}:/{key}"
    early, late = next((early, late) for pattern, early, late in RULES if fnmatchcase(name, pattern))
    return early if updates <= SHORT else late
