"""What learning curves say in numbers: how high on average, and how soon a given score."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccwm.report.curves import track
from ccwm.report.results import Cell, Results
from ccwm.report.statistics import estimate
from ccwm.report.summaries import best_possible
from ccwm.training.history import mean_height

CURVE = ["env_steps", "return_mean"]
END = 0.1
"""The last part of a curve whose evaluations are averaged, since one evaluation of a few episodes is rough."""


@dataclass(frozen=True)
class Learning:
    """The curves of one variant: mean height, end, and the steps until a return is first reached, over seeds."""

    task: str
    variant: str
    cells: tuple[Cell, ...]
    env_steps: int
    area: float
    area_low: float | None
    area_high: float | None
    end: float
    end_low: float | None
    end_high: float | None
    target: float | None
    reached: int | None
    steps: float | None


def curve_area(cell: Cell, *, until: float = math.inf) -> float | None:
    """Mean height of the curve up to ``until`` environment steps: area by trapezia, divided by width."""
    if (points := _points(cell, until)) is None:
        return None
    return mean_height(*points)


def curve_end(cell: Cell, *, until: float = math.inf) -> float | None:
    """Mean of the evaluations within the last tenth of the steps up to ``until``, or up to where the curve ends."""
    if (points := _points(cell, until)) is None:
        return None
    steps, returns = points
    return float(returns[steps >= (1 - END) * steps[-1]].mean())


def steps_to_reach(cell: Cell, target: float) -> float | None:
    """Environment steps of the first evaluation that returns at least the target; ∞ where none does."""
    if (points := _points(cell, math.inf)) is None:
        return None
    steps, returns = points
    above = returns >= target
    return float(steps[above.argmax()]) if above.any() else math.inf


def learnings(results: Results, task: str, *, target_score: float) -> list[Learning]:
    """One row for each variant with a curve; the target is a score between the random policy's and the best return."""
    target = _target(results, task, target_score)
    rows = []
    for variant in results.variants:
        cells = [cell for cell in results.cells("train", task=task, variant=variant) if curve_area(cell) is not None]
        if not cells:
            continue
        area, end = (
            estimate([value for cell in cells if (value := of(cell)) is not None]) for of in (curve_area, curve_end)
        )
        steps = [] if target is None else [at for cell in cells if (at := steps_to_reach(cell, target)) is not None]
        median = float(np.median(steps)) if steps else math.inf
        rows.append(
            Learning(
                task=task,
                variant=variant,
                cells=tuple(cells),
                env_steps=round(max(cell.number("env_steps") or 0 for cell in cells)),
                area=area.mean,
                area_low=area.low,
                area_high=area.high,
                end=end.mean,
                end_low=end.low,
                end_high=end.high,
                target=target,
                reached=None if target is None else sum(map(math.isfinite, steps)),
                steps=median if math.isfinite(median) else None,
            )
        )
    return rows


def _target(results: Results, task: str, score: float) -> float | None:
    """The return of a score: 0 is the random policy's, 1 the best possible; None where either is unknown."""
    best = best_possible(results, task)
    random = results.random_level(task)
    return None if best is None or random is None else random + score * (best - random)


def _points(cell: Cell, until: float) -> tuple[np.ndarray, np.ndarray] | None:
    frame = cell.table("curve.csv", CURVE)
    if frame is None:
        return None
    steps, returns = track(frame, *CURVE)
    kept = steps <= until
    return (steps[kept], returns[kept]) if kept.any() else None
