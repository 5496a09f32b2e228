"""The section on retracing: whether a run retraces at all, what z̃ and ž decode to, and what truncation makes of it."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from ccwm.report import figures, format
from ccwm.report.blocks import Block
from ccwm.report.section import Report, Section, by_task
from ccwm.report.statistics import Frames, curves_of, track
from ccwm.report.table import Column, Row, averaged, rows_of, table
from ccwm.report.words import say
from ccwm.studies.components import read_components
from ccwm.studies.retracing import ARRAYS, Retraced, read_retracing, retracing_figure
from ccwm.training.history import read_curve

CURVE, FILES = ("curve.csv",), ("retracing.csv", "components.csv", ARRAYS)
SKILLS = {"retrace_skill_latent": "latent", "retrace_skill_observation": "observation"}
"""Columns of ``curve.csv``, and the space that each is measured in."""
LOWEST = -1.0
"""Skill below which a curve is cut off: a model that has hardly begun may be far below."""
COLUMNS = (
    Column("Variant", "variant"),
    Column("Skill, latent", "retrace_skill_latent"),
    Column("Skill, observation", "retrace_skill_observation"),
    Column("Error, seen z̃", "forward_error"),
    Column("Error, retraced ž", "retraced_error"),
    Column("Truncated", "truncated"),
    Column("Irreversible", "events", format.whole),
)


def measure(of: Retraced) -> Row:
    """Mean errors of the shown steps, the share that is truncated, and how many transitions are irreversible."""
    return {
        "forward_error": float(of.forward_error.mean()),
        "retraced_error": float(of.retraced_error.mean()) if len(of.retraced_error) else None,
        "truncated": float(1 - of.kept.mean()),
        "events": int(of.irreversible.sum()),
    }


def last_skill(curve: pd.DataFrame) -> Row:
    """The retrace skill at the last evaluation; None for an agent that does not retrace."""
    return {name: float(track(curve, "env_steps", name)[1][-1]) if name in curve else None for name in SKILLS}


def skill_figure(task: str, frames: Frames, colours: Mapping[str, str]) -> Figure | None:
    """Retrace skill against environment steps, a panel for each space; None where nobody retraces."""
    curves = {space: curves_of(frames, "env_steps", name) for name, space in SKILLS.items()}
    if not any(curves.values()):
        return None
    figure = Figure(figsize=(2 * figures.WIDTH, 3.1))
    panels = figure.subplots(1, len(curves), sharey=True)
    for axes, (space, of) in zip(panels, curves.items(), strict=True):
        figures.draw_curves(axes, of, colours)
        axes.axhline(0, color=figures.INK, lw=1.2, ls=figures.DASHED, label="no step back", zorder=1)
        axes.set_title(f"{task}, in {space} space")
        axes.set(xlabel="environment steps", xlim=(0, None))
        figures.env_steps(axes)
    lowest = min(axes.dataLim.y0 for axes in panels)
    panels[0].set(ylabel="retrace skill", ylim=(max(lowest - 0.03, LOWEST), 1.03))
    figures.shared_legend(figure, width=2 * figures.WIDTH)
    return figure


def summarise(report: Report, task: str) -> list[Row]:
    """A row for each variant with a world model: its last skill and the errors of its shown steps, over seeds."""
    load = report.results.load
    skills = rows_of(load("train", task, read_curve, CURVE), lambda curve: [last_skill(curve)])
    shown = rows_of(load("rollout-viz", task, read_retracing, FILES), lambda of: [measure(of)])
    rows: dict[str, Row] = {}
    for row in averaged(skills, "task", "variant") + averaged(shown, "task", "variant", events=sum):
        cells = rows.get(row["variant"], {"cells": ()})["cells"] + row["cells"]
        rows[row["variant"]] = {**rows.get(row["variant"], {}), **row, "cells": cells}
    return [row for row in rows.values() if any(row.get(key) is not None for key in (*SKILLS, "forward_error"))]


def of_task(report: Report, task: str) -> list[Block]:
    """The skill while training, a picture for each variant, of its first seed, and a table over seeds."""
    results, rows = report.results, summarise(report, task)
    if not rows:
        return []
    report.csv("retracing", rows)
    blocks: list[Block] = []
    figure = skill_figure(task, results.load("train", task, read_curve, CURVE), report.colours)
    if figure is not None:
        label, note = f"Retrace skill on {task}", say("retracing", "skill")
        blocks.append(report.picture(figure, f"skill-{task}", label, note=note, style="strip"))
    for variant, of in results.load("rollout-viz", task, read_retracing, FILES).items():
        cell, shown = next(iter(of.items()))
        name, label = f"retracing-{task}-{variant}", f"Retracing of {variant} on {task}"
        note = f"{variant} on {task} (seed {cell.seed})."
        drawn = retracing_figure(shown, results.read(cell, read_components))
        blocks.append(report.picture(drawn, name, label, note=note, style="strip"))
    return [*blocks, table(say("retracing", "table", task=task), rows, COLUMNS)]


SECTION = Section("retracing", "Retracing", by_task(of_task, intro="retracing"), {"train": CURVE, "rollout-viz": FILES})
