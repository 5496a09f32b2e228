"""The section on learning curves: greedy returns while training, how high on average, and how soon a given score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccwm.cells import Cell
from ccwm.report import evaluation, figures, format
from ccwm.report.blocks import Block, Panels, Table, Words
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.statistics import Curve, estimate, over_seeds, track
from ccwm.report.table import interval, number, sortable, table, text
from ccwm.report.words import say
from ccwm.training.history import mean_height, read_curve, read_metrics

FILES = ("curve.csv",)
END = 0.1
"""The last part of a curve whose evaluations are averaged, since one evaluation of a few episodes is rough."""
QUOTED_DOTS = ((0, (1, 2)), (0, (1, 4)))


class Learning(NamedTuple):
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


def curve_area(frame: pd.DataFrame, *, until: float = math.inf) -> float | None:
    """Mean height of the curve up to ``until`` environment steps: area by trapezia, divided by width."""
    steps, returns = _points(frame, until)
    return mean_height(steps, returns) if len(steps) else None


def curve_end(frame: pd.DataFrame, *, until: float = math.inf) -> float | None:
    """Mean of the evaluations within the last tenth of the steps up to ``until``, or up to where the curve ends."""
    steps, returns = _points(frame, until)
    return float(returns[steps >= (1 - END) * steps[-1]].mean()) if len(steps) else None


def steps_to_reach(frame: pd.DataFrame, target: float) -> float:
    """Environment steps of the first evaluation that returns at least the target; ∞ where none does."""
    steps, returns = _points(frame, math.inf)
    above = returns >= target
    return float(steps[above.argmax()]) if above.any() else math.inf


def _points(frame: pd.DataFrame, until: float) -> tuple[np.ndarray, np.ndarray]:
    steps, returns = track(frame, "env_steps", "return_mean")
    return steps[steps <= until], returns[steps <= until]


def load_curves(results: Results, task: str) -> dict[str, Curve]:
    """The mean curve of every variant."""
    found = results.load("train", task, read_curve, FILES)
    curves = {
        variant: over_seeds(of.values(), "env_steps", "return_mean", spread="return_sd")
        for variant, of in found.items()
    }
    return {variant: curve for variant, curve in curves.items() if curve is not None}


def summarise(results: Results, task: str, *, target_score: float) -> list[Learning]:
    """One row for each variant with a curve; the target is a score between the random policy's and the best return."""
    best, random = evaluation.best_possible(results, task), evaluation.random_level(results, task)
    target = None if best is None or random is None else random + target_score * (best - random)
    rows = []
    for variant, found in results.load("train", task, read_curve, FILES).items():
        curves = [frame for frame in found.values() if len(frame)]
        if not curves:
            continue
        area, end = (estimate([of(frame) or 0.0 for frame in curves]) for of in (curve_area, curve_end))
        steps = [] if target is None else [steps_to_reach(frame, target) for frame in curves]
        median = float(np.median(steps)) if steps else math.inf
        rows.append(
            Learning(
                task,
                variant,
                tuple(found),
                max(results.read(cell, read_metrics).env_steps for cell in found),
                *(area.mean, area.low, area.high),
                *(end.mean, end.low, end.high),
                target=target,
                reached=None if target is None else sum(map(math.isfinite, steps)),
                steps=median if math.isfinite(median) else None,
            )
        )
    return rows


def learning_table(task: str, rows: list[Learning]) -> Table:
    """The learning curves of one task in numbers."""
    target = rows[0].target

    def reached(row: Learning) -> str:
        return format.NONE if row.reached is None else f"{row.reached} of {len(row.cells)}"

    def steps(row: Learning) -> str:
        return "not reached" if row.target is not None and row.steps is None else format.whole(row.steps)

    return table(
        say("learning", "table", task=task),
        rows,
        [
            ("Variant", lambda row: text(row.variant)),
            ("Mean height", lambda row: number(row.area)),
            ("95% interval", lambda row: interval(row.area_low, row.area_high)),
            ("Last tenth", lambda row: number(row.end)),
            ("95% interval", lambda row: interval(row.end_low, row.end_high)),
            (
                "Steps" if target is None else f"Steps to {format.number(target)}",
                lambda row: sortable(steps(row), row.steps),
            ),
            ("Reached", lambda row: sortable(reached(row), row.reached)),
        ],
    )


def draw_learning(
    axes: Axes,
    task: str,
    curves: Mapping[str, Curve],
    colours: Mapping[str, str],
    *,
    random: float | None,
    quoted: Mapping[str, float] | None = None,
) -> None:
    """Draw greedy returns against environment steps, the random policy's level dashed, quoted returns dotted."""
    figures.draw_curves(axes, curves, colours)
    if random is not None:
        axes.axhline(random, color=figures.INK, lw=1.2, ls=figures.DASHED, label="random policy", zorder=1)
    for (method, level), dots in zip((quoted or {}).items(), QUOTED_DOTS, strict=False):
        axes.axhline(level, color=figures.INK, lw=1.0, ls=dots, alpha=0.7, label=f"{method} (quoted)", zorder=1)
    axes.set(title=task, xlabel="environment steps", ylabel="return", xlim=(0, None))
    figures.env_steps(axes)


@figures.styled
def learning_figure(report: Report, task: str, curves: Mapping[str, Curve]) -> Figure:
    """Greedy returns of every variant on one task."""
    figure, axes = figures.panel()
    best, random = evaluation.best_possible(report.results, task), evaluation.random_level(report.results, task)
    quoted = report.paper.quoted_on(task, best) if report.paper is not None else {}
    draw_learning(axes, task, curves, report.colours, random=random, quoted=quoted)
    figures.shared_legend(figure)
    return figure


def build(report: Report) -> list[Block]:
    """A figure and a table for each task."""
    results = report.results
    curves = {task: found for task in results.study.tasks if (found := load_curves(results, task))}
    if not curves:
        return []
    rows = {task: summarise(results, task, target_score=report.target_score) for task in curves}
    report.csv("learning", [row._asdict() for of in rows.values() for row in of])
    spread = say("learning", "seeds" if len(results.study.seeds) > 1 else "seed")
    return [
        Words(say("learning", "intro", spread=spread)),
        Panels(
            [
                report.picture(learning_figure(report, task, of), f"learning-{task}", f"Learning curves on {task}")
                for task, of in curves.items()
            ]
        ),
        *(learning_table(task, of) for task, of in rows.items()),
    ]


SECTION = Section("learning", "Learning curves", build, {"collect": (), "train": FILES})
