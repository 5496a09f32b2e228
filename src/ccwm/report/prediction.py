"""The section on open-loop prediction: a strip and a video of frames, errors by step, and how long they stay useful."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ccwm.cells import Cell
from ccwm.errors import UserError
from ccwm.report import figures, format
from ccwm.report.blocks import Block, Entry, Panels, Picture, Table, Video
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.statistics import averaged, over_seeds
from ccwm.report.table import interval, number, sortable, table, text
from ccwm.report.words import say
from ccwm.studies.images import write_figure
from ccwm.studies.prediction import Metrics, read_errors, read_frames, read_horizons, read_metrics
from ccwm.studies.strips import Strip, strip_figure, video

MEASURES = {
    "error": ("error per pixel (MSE)", {"last frame repeated": "baseline_error", "mean frame": "mean_frame_error"}),
    "ssim": ("structural similarity (SSIM)", {"last frame repeated": "baseline_ssim"}),
}
"""The measures of ``errors.csv``: the label of the axis, and the baselines by name."""
BASELINES = {"the last frame repeated": "last_frame", "the mean frame": "mean_frame"}
"""The columns of ``horizons.csv``."""
Frames = dict[str, dict[Cell, pd.DataFrame]]


class Prediction(NamedTuple):
    """Open-loop prediction of one variant: the study's metrics, averaged over seeds."""

    variant: str
    cells: tuple[Cell, ...]
    metrics: Metrics


def summarise(results: Results, task: str) -> list[Prediction]:
    """One row for each variant whose open-loop prediction was measured on the task."""
    found = results.load("rollout-viz", task, read_metrics)
    return [Prediction(variant, tuple(of), averaged(list(of.values()))) for variant, of in found.items()]


def load_strips(results: Results, task: str) -> tuple[int, list[Strip]] | None:
    """The first seed that has frames, and its shown episodes; None where no variant has any."""
    found = results.load("rollout-viz", task, read_frames, ("frames.safetensors",))
    for seed in results.study.seeds:
        there = {variant: cell for variant, of in found.items() for cell in of if cell.seed == seed}
        if not there:
            continue
        truth = next(found[variant][cell][0] for variant, cell in there.items())  # [N, T, size, size, 3]
        for variant, cell in there.items():
            if not np.array_equal(found[variant][cell][0], truth):
                path = results.root / cell.results / "frames.safetensors"
                hint = f"predict again with `dvc repro --force {cell}`"
                raise UserError(f"{path} shows another episode than the other variants", hint=hint)
        context = max(results.read(cell, read_metrics).context for cell in there.values())
        predicted = {variant: found[variant][cell][1] for variant, cell in there.items()}
        return seed, [
            Strip(context, truth[i], {variant: of[i] for variant, of in predicted.items()}) for i in range(len(truth))
        ]
    return None


def still_better(frames: list[pd.DataFrame], column: str, longest: int) -> np.ndarray:
    """Share of all episodes whose horizon is at least 0, 1, … steps.   → [longest + 1]."""
    steps = np.concatenate([frame[column].to_numpy(np.float64) for frame in frames])
    return np.asarray((steps[:, None] >= np.arange(longest + 1)).mean(0))


def prediction_table(task: str, rows: list[Prediction]) -> Table:
    """Open-loop prediction on one task."""
    first = rows[0].metrics
    return table(
        say("prediction", "table", task=task, context=first.context, horizon=first.horizon),
        rows,
        [
            ("Variant", lambda row: text(row.variant)),
            ("Useful steps", lambda row: number(row.metrics.useful_steps_of_mean, format.steps)),
            ("95% interval", lambda row: _interval(row, "useful")),
            ("Median", lambda row: number(row.metrics.useful_steps_median, format.steps)),
            ("Informed", lambda row: number(row.metrics.informed_steps_of_mean, format.steps)),
            ("95% interval", lambda row: _interval(row, "informed")),
            ("Error", lambda row: _beside(row.metrics.error_mean, row.metrics.baseline_error_mean)),
            ("SSIM", lambda row: _beside(row.metrics.ssim_mean, row.metrics.baseline_ssim_mean)),
            ("Episodes", lambda row: number(row.metrics.episodes * len(row.cells), format.whole)),
        ],
    )


def _interval(row: Prediction, which: str) -> Entry:
    low, high = (getattr(row.metrics, f"{which}_steps_of_mean_{end}") for end in ("low", "high"))
    return interval(low, high, format.steps)


def _beside(value: float, baseline: float) -> Entry:
    return sortable(format.beside(value, baseline), value)


@figures.styled
def step_figure(task: str, measure: str, frames: Frames, colours: Mapping[str, str]) -> Figure:
    """A measure of open-loop prediction against the step, with those of the baselines dashed and dotted."""
    label, baselines = MEASURES[measure]
    figure, axes = figures.panel()
    curves = {variant: over_seeds(of.values(), "step", measure) for variant, of in frames.items()}
    figures.draw_curves(axes, {variant: curve for variant, curve in curves.items() if curve is not None}, colours)
    every = [frame for of in frames.values() for frame in of.values()]
    for (name, column), line in zip(baselines.items(), (figures.DASHED, "dotted"), strict=False):
        if (curve := over_seeds(every, "step", column)) is not None:
            axes.plot(curve.x, curve.mean, color=figures.INK, lw=1.2, ls=line, label=name, zorder=1)
    axes.set(title=task, xlabel="predicted step", ylabel=label, xlim=(0, None))
    if measure == "error":
        axes.set_ylim(bottom=0)
    figures.shared_legend(figure)
    return figure


@figures.styled
def horizon_figure(task: str, frames: Frames, longest: int, colours: Mapping[str, str]) -> Figure:
    """Share of episodes whose prediction is still better than a baseline, step by step, a panel for each baseline."""
    figure = Figure(figsize=(figures.WIDTH, 3.1))
    panels = figure.subplots(1, len(BASELINES), sharey=True)
    for axes, (baseline, column) in zip(panels, BASELINES.items(), strict=True):
        for variant, of in frames.items():
            share = still_better(list(of.values()), column, longest)
            axes.step(np.arange(len(share)), share, color=colours[variant], lw=1.8, where="post", label=variant)
        axes.set_title(f"than {baseline}", fontsize=9)
        axes.set(xlabel="predicted step", ylim=(0, 1.03), xlim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    panels[0].set_ylabel("episodes still better")
    figure.suptitle(task, x=0.01, ha="left", fontsize=10)
    figures.shared_legend(figure)
    return figure


def build(report: Report) -> list[Block]:
    """Strip, video, figures and a table for each task."""
    results = report.results
    rows = {task: found for task in results.study.tasks if (found := summarise(results, task))}
    report.csv(
        "prediction",
        [
            {"task": task, "variant": row.variant, "cells": row.cells, **row.metrics._asdict()}
            for task, of in rows.items()
            for row in of
        ],
    )

    def of_task(task: str) -> list[Block]:
        if task not in rows:
            return []
        panels: list[Picture | Video] = []
        blocks: list[Block] = []
        if (found := load_strips(results, task)) is not None:
            seed, strips = found
            blocks = [_strip(report, task, seed, strips[0])]
            frames = np.concatenate([video(strip) for strip in strips])
            label = f"Truth, predictions and errors on {task}"
            panels.append(report.video(frames, f"rollout-{task}", label, note=say("prediction", "video")))
        if errors := results.load("rollout-viz", task, read_errors, ("errors.csv",)):
            for measure, (label, _) in MEASURES.items():
                figure = step_figure(task, measure, errors, report.colours)
                panels.append(report.picture(figure, f"{measure}-{task}", f"{label} on {task}"))
        if horizons := results.load("rollout-viz", task, read_horizons, ("horizons.csv",)):
            figure = horizon_figure(task, horizons, round(rows[task][0].metrics.horizon), report.colours)
            panels.append(report.picture(figure, f"horizons-{task}", f"Distribution of the horizon on {task}"))
        return [*blocks, *([Panels(panels)] if panels else []), prediction_table(task, rows[task])]

    return report.by_task(of_task)


@figures.styled
def _strip(report: Report, task: str, seed: int, strip: Strip) -> Picture:
    """The paper's figure as SVG, PDF and PNG."""
    figure = strip_figure(strip)
    note = say("prediction", "strip", task=task, seed=seed)
    saved = report.picture(figure, f"strip-{task}", f"Predicted frames on {task}", note=note, style="strip")
    write_figure(report.folder / "figures" / f"{saved.file}.png", figure, dpi=200)
    return saved


SECTION = Section(
    "prediction",
    "Open-loop prediction",
    build,
    {"rollout-viz": ("errors.csv", "horizons.csv", "frames.safetensors")},
)
