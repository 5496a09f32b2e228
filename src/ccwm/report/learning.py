"""The section on learning curves: greedy returns while training, how high on average, and how soon a given score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ccwm.report import evaluation, figures, format
from ccwm.report.blocks import Block, Panels, Table, Words
from ccwm.report.claims import Paper, Published, Quoted
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.sources import Source
from ccwm.report.statistics import Curve, curves_of, estimate, track
from ccwm.report.table import Column, Row, table
from ccwm.report.words import say
from ccwm.training.history import mean_height, read_curve, read_metrics

FILES = ("curve.csv",)
END = 0.1
"""The last part of a curve whose evaluations are averaged, since one evaluation of a few episodes is rough."""
QUOTED_DOTS = ((0, (1, 2)), (0, (1, 4)))
MARKS = "Ds^v"
REACH = 1.1
"""How far beyond the last evaluation a published return may lie to be marked."""


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


MEASURES = {"area": curve_area, "end": curve_end}
"""What a curve is worth; a claim may name one."""


def load_curves(results: Results, task: str) -> dict[str, Curve]:
    """The mean curve of every variant."""
    found = results.load("train", task, read_curve, FILES)
    return curves_of(found, "env_steps", "return_mean", spread="return_sd")


def summarise(results: Results, task: str, *, target_score: float) -> list[Row]:
    """One row for each variant with a curve: mean height, end, and the steps until a return is first reached.

    That target is a score between the random policy's return and the best one.
    """
    best, random = evaluation.best_possible(results, task), evaluation.random_level(results, task)
    target = None if best is None or random is None else random + target_score * (best - random)
    rows = []
    for variant, found in results.load("train", task, read_curve, FILES).items():
        curves = [frame for frame in found.values() if len(frame)]
        if not curves:
            continue
        env_steps = max(results.read(cell, read_metrics).env_steps for cell in found)
        row = {"task": task, "variant": variant, "cells": tuple(found), "env_steps": env_steps}
        for name, measure in MEASURES.items():
            over = estimate([measure(frame) or 0.0 for frame in curves])
            row |= {name: over.mean, f"{name}_low": over.low, f"{name}_high": over.high}
        steps = [math.inf if target is None else steps_to_reach(frame, target) for frame in curves]
        reached, median = sum(map(math.isfinite, steps)), float(np.median(steps))
        row |= {"target": target, "reached": None if target is None else reached}
        rows.append(row | {"steps": median if math.isfinite(median) else None})
    return rows


def learning_table(task: str, rows: list[Row]) -> Table:
    """The learning curves of one task in numbers."""
    target = rows[0]["target"]
    columns = (
        Column("Variant", "variant"),
        Column("Mean height", "area"),
        Column("95% interval", ("area_low", "area_high"), format.interval),
        Column("Last tenth", "end"),
        Column("95% interval", ("end_low", "end_high"), format.interval),
        Column(
            "Steps" if target is None else f"Steps to {format.number(target)}",
            ("steps", "target"),
            lambda steps, _: "not reached" if steps is None else format.whole(steps),
        ),
        Column("Reached", ("reached", "of"), "{} of {}".format),
    )
    lines = [row if target is None else {**row, "of": len(row["cells"])} for row in rows]
    return table(say("learning", "table", task=task), lines, columns)


def draw_learning(
    axes: Axes,
    results: Results,
    task: str,
    curves: Mapping[str, Curve],
    colours: Mapping[str, str],
    *,
    quoting: Paper | None = None,
) -> None:
    """Draw greedy returns against environment steps, the random policy's level dashed, quoted returns dotted."""
    figures.draw_curves(axes, curves, figures.variant_colours(results.study.variants, colours))
    if (random := evaluation.random_level(results, task)) is not None:
        axes.axhline(random, lw=1.2, ls=figures.DASHED, color=figures.INK, label="random policy", zorder=1)
    if quoting is not None:
        dots = _looks(quoting.quoted, QUOTED_DOTS)
        for method, level in quoting.quoted_on(task, evaluation.best_possible(results, task)).items():
            look = {"ls": dots[method], "lw": 1.0, "alpha": 0.7, "color": figures.INK}
            axes.axhline(level, label=f"{method} (quoted)", zorder=1, **look)
    axes.set(title=task, xlabel="environment steps", ylabel="return", xlim=(0, None))
    figures.env_steps(axes)


def draw_published(axes: Axes, paper: Paper | None, source: Source, task: str, *, until: float) -> None:
    """Mark what others published from the same inputs, at the environment steps that our curves reach."""
    axes.set_ylabel(f"return, {format.inputs(source.observation)}")
    if paper is None:
        return
    marks = _looks(paper.published, MARKS)
    methods = paper.published_on(task, source.observation, evaluation.best_possible(source.results, task))
    for method, points in methods.items():
        if shown := {steps: value for steps, value in points.items() if steps <= REACH * until}:
            look: dict[str, Any] = {"ls": "", "marker": marks[method], "ms": 5.5, "mfc": "none", "mec": figures.INK}
            label = f"{method}, published"
            axes.plot([*shown], [*shown.values()], label=label, clip_on=False, zorder=3, **look)


def _looks(known: Iterable[Published | Quoted], looks: Sequence[Any]) -> dict[str, Any]:
    """How each method is drawn, on every task alike, whatever is known there."""
    return dict(zip(dict.fromkeys(of.method for of in known), cycle(looks), strict=False))


def build(report: Report) -> list[Block]:
    """A figure and a table for each task."""
    results = report.results
    curves = {task: found for task in results.study.tasks if (found := load_curves(results, task))}
    if not curves:
        return []
    pictures, tables = [], []
    for task, of in curves.items():
        rows = summarise(results, task, target_score=report.target_score)
        report.csv("learning", rows)
        figure, axes = figures.panel()
        draw_learning(axes, results, task, of, report.colours, quoting=report.paper)
        draw_published(axes, report.paper, report.sources[0], task, until=max(curve.x[-1] for curve in of.values()))
        figures.shared_legend(figure)
        pictures.append(report.picture(figure, f"learning-{task}", f"Learning curves on {task}"))
        tables.append(learning_table(task, rows))
    spread = say("learning", "seeds" if len(results.study.seeds) > 1 else "seed")
    return [Words(say("learning", "intro", spread=spread)), Panels(pictures), *tables]


SECTION = Section("learning", "Learning curves", build, {"collect": (), "train": FILES})
