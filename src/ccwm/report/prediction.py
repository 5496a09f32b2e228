"""The section on open-loop prediction: what it looks like, errors by step, and how long they stay useful."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ccwm.report import figures, format
from ccwm.report.blocks import Block, Details, Panels, Picture, Video
from ccwm.report.results import Results
from ccwm.report.rollouts import SHOWN, curve_blocks, load_shown, strip_blocks
from ccwm.report.section import Report, Section, by_task
from ccwm.report.statistics import Frames, curves_of, over_seeds
from ccwm.report.table import Column, Row, averaged, rows_of, table
from ccwm.report.words import say
from ccwm.studies.components import Curves, read_components
from ccwm.studies.prediction import read_errors, read_horizons, read_metrics
from ccwm.studies.strips import Strip

ERRORS, HORIZONS, COMPONENTS = ("errors.csv",), ("horizons.csv",), ("components.csv",)
LAST, CONSTANT = "last {} repeated", "mean {}"
"""The baselines; what is observed is a frame or a state."""
MEASURES = {
    "error": ("error (MSE)", {LAST: "baseline_error", CONSTANT: "constant_error"}),
    "ssim": ("structural similarity (SSIM)", {LAST: "baseline_ssim"}),
}
"""The measures of ``errors.csv``: the label of the axis, and the baselines by name."""
BASELINES = {LAST: "last", CONSTANT: "constant"}
"""The columns of ``horizons.csv``."""
STEPS = partial(format.interval, form=format.steps)
COLUMNS = (
    Column("Variant", "variant"),
    Column("Useful steps", "useful_steps_of_mean", format.steps),
    Column("95% interval", ("useful_steps_of_mean_low", "useful_steps_of_mean_high"), STEPS),
    Column("Median", "useful_steps_median", format.steps),
    Column("Informed", "informed_steps_of_mean", format.steps),
    Column("95% interval", ("informed_steps_of_mean_low", "informed_steps_of_mean_high"), STEPS),
    Column("Error", ("error_mean", "baseline_error_mean"), format.beside),
    Column("SSIM", ("ssim_mean", "baseline_ssim_mean"), format.beside),
    Column("Episodes", "episodes", format.whole),
)


def summarise(results: Results, task: str) -> list[Row]:
    """The study's metrics of each variant whose open-loop prediction was measured on the task, averaged over seeds."""
    return averaged(rows_of(results.load("rollout-viz", task, read_metrics)), "task", "variant")


def still_better(frames: list[pd.DataFrame], column: str, longest: int) -> np.ndarray:
    """Share of all episodes whose horizon is at least 0, 1, … steps.   → [longest + 1]."""
    steps = pd.concat(frames)[column].to_numpy(np.float64)
    return np.asarray((steps[:, None] >= np.arange(longest + 1)).mean(0))


def step_figure(task: str, measure: str, seen: str, frames: Frames, colours: Mapping[str, str]) -> Figure:
    """A measure of open-loop prediction against the step, with those of the baselines dashed and dotted.

    What is ``seen`` is a frame or a state.
    """
    label, baselines = MEASURES[measure]
    figure, axes = figures.panel()
    figures.draw_curves(axes, curves_of(frames, "step", measure), colours)
    every = [frame for of in frames.values() for frame in of.values()]
    for (name, column), line in zip(baselines.items(), (figures.DASHED, "dotted"), strict=False):
        if (curve := over_seeds(every, "step", column)) is not None:
            axes.plot(curve.x, curve.mean, color=figures.INK, lw=1.2, ls=line, label=name.format(seen), zorder=1)
    axes.set(title=task, xlabel="predicted step", ylabel=label, xlim=(0, None))
    if measure == "error":
        axes.set_ylim(bottom=0)
    figures.shared_legend(figure)
    return figure


def horizon_figure(task: str, seen: str, frames: Frames, longest: int, colours: Mapping[str, str]) -> Figure:
    """Share of episodes whose prediction is still better than a baseline, step by step, a panel for each baseline."""
    figure = Figure(figsize=(figures.WIDTH, 3.1))
    panels = figure.subplots(1, len(BASELINES), sharey=True)
    for axes, (baseline, column) in zip(panels, BASELINES.items(), strict=True):
        for variant, of in frames.items():
            share = still_better(list(of.values()), column, longest)
            axes.step(np.arange(len(share)), share, color=colours[variant], lw=1.8, where="post", label=variant)
        axes.set_title(f"than the {baseline.format(seen)}", fontsize=9)
        axes.set(xlabel="predicted step", ylim=(0, 1.03), xlim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    panels[0].set_ylabel("episodes still better")
    figure.suptitle(task, x=0.01, ha="left", fontsize=10)
    figures.shared_legend(figure)
    return figure


def component_table(report: Report, task: str) -> list[Block]:
    """The errors of every component of a state, folded; none where pixels were predicted."""
    found = report.results.load("rollout-viz", task, read_components, COMPONENTS)
    lines = rows_of(found, lambda of: pd.DataFrame(of._asdict()).to_dict("records"))
    if not lines:
        return []
    means = averaged(lines, "task", "variant", "component")
    report.csv("components", means)
    rows: dict[str, Row] = {}
    for line in means:
        row = rows.setdefault(line["component"], {**line, "cells": ()})
        row[f"error of {line['variant']}"] = line["error"]
        row["cells"] += line["cells"]
    baselines = Column("Last state repeated", "baseline_error"), Column("Mean state", "constant_error")
    columns = (Column("Component", "component"), *(Column(name, f"error of {name}") for name in found), *baselines)
    shown = table(say("prediction", "components", task=task), list(rows.values()), columns)
    return [Details(f"Error of each of the {len(rows)} components on {task}", [shown])]


def of_task(report: Report, task: str) -> list[Block]:
    """Pictures and a video of a few episodes, figures and tables of all."""
    results, rows = report.results, summarise(report.results, task)
    if not rows:
        return []
    report.csv("prediction", rows)
    seen = "state" if rows[0]["ssim_mean"] is None else "frame"
    blocks, panels = list[Block](), list[Picture | Video]()
    if (found := load_shown(results, task)) is not None:
        seed, shown = found
        if strips := [of for of in shown if isinstance(of, Strip)]:
            picture, film = strip_blocks(report, task, seed, strips)
            blocks.append(picture)
            panels.append(film)
        if curves := [of for of in shown if isinstance(of, Curves)]:
            blocks += curve_blocks(report, task, seed, curves)
    if errors := results.load("rollout-viz", task, read_errors, ERRORS):
        for measure, (label, _) in MEASURES.items():
            if measure == "error" or seen == "frame":
                figure = step_figure(task, measure, seen, errors, report.colours)
                panels.append(report.picture(figure, f"{measure}-{task}", f"{label} on {task}"))
    context, horizon = rows[0]["context"], rows[0]["horizon"]
    if horizons := results.load("rollout-viz", task, read_horizons, HORIZONS):
        figure = horizon_figure(task, seen, horizons, round(horizon), report.colours)
        panels.append(report.picture(figure, f"horizons-{task}", f"Distribution of the horizon on {task}"))
    if panels:
        blocks.append(Panels(panels))
    lines = [{**row, "episodes": row["episodes"] * len(row["cells"])} for row in rows]
    about = {"task": task, "context": context, "horizon": horizon, "seen": seen, "error": say("prediction", seen)}
    return [*blocks, table(say("prediction", "table", **about), lines, COLUMNS), *component_table(report, task)]


SECTION = Section("prediction", "Open-loop prediction", by_task(of_task), {"rollout-viz": (*ERRORS, *HORIZONS, *SHOWN)})
