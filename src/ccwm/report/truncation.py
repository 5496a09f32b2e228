"""The section on truncation quality: the mask against the true labels, over η, by both rules and the agent's own."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from ccwm.report import figures, format
from ccwm.report.blocks import Block, Panels, Words
from ccwm.report.section import Report, Section, by_task
from ccwm.report.statistics import Frames, over_seeds
from ccwm.report.table import Column, Row, averaged, rows_of, table
from ccwm.report.words import say
from ccwm.studies.truncation import read_truncation

FILES = ("truncation.csv",)
DRAWN = {
    "truncated_share": "share truncated",
    "precision": "precision (states)",
    "recall": "recall (states)",
    "event_precision": "precision (events)",
    "event_recall": "recall (events)",
}
"""Measures with a figure, and its title."""
COLUMNS = (
    Column("Variant", "variant"),
    Column("η of", "which"),
    Column("Rule", "rule"),
    Column("η", "threshold"),
    Column("Truncated", "truncated_share"),
    Column("True share", "true_share"),
    Column("Precision", "precision"),
    Column("Recall", "recall"),
    Column("F1", "f1"),
    Column("Precision (events)", "event_precision"),
    Column("Recall (events)", "event_recall"),
    Column("F1 (events)", "event_f1"),
    Column("Events", "events", format.whole),
)
LINES = {"prose": "-", "algorithm1": ":"}


def summarise(frames: Frames) -> list[Row]:
    """Each variant at its own η, and at the best one by the prose where there are labels to judge by."""
    chosen: list[Row] = []
    for variant, of in frames.items():
        best, lines = best_threshold(list(of.values())), rows_of({variant: of})
        chosen += [{**line, "which": "own"} for line in lines if line["own"]]
        by_prose = [line for line in lines if line["rule"] == "prose" and line["threshold"] == best]
        chosen += [{**line, "which": "best"} for line in by_prose]
    return averaged(chosen, "variant", "which", events=sum)


def best_threshold(frames: list[pd.DataFrame]) -> float | None:
    """The η, of those that every seed has, with the highest mean F1 of events by the prose; None without labels."""
    prose = [frame[frame["rule"] == "prose"].set_index("threshold")["event_f1"] for frame in frames]
    together = pd.concat(prose, axis=1, join="inner").mean(axis=1).dropna()
    return float(together.index[int(together.to_numpy().argmax())]) if len(together) else None


def measure_figure(measure: str, frames: Frames, colours: Mapping[str, str]) -> Figure:
    """One measure against η: a line for each variant and rule, a dot at each agent's own η."""
    figure, axes = figures.panel(2.9, 2.1)
    for variant, of in frames.items():
        for rule, line in LINES.items():
            curve = over_seeds([frame[frame["rule"] == rule] for frame in of.values()], "threshold", measure)
            if curve is not None:
                axes.plot(curve.x, curve.mean, color=colours[variant], lw=1.5, ls=line)
        for frame in of.values():
            own = frame[frame["own"]]
            axes.plot(own["threshold"], own[measure], "o", color=colours[variant], ms=5, mew=0)
    axes.set(xscale="log", title=DRAWN[measure], xlabel="η", ylim=(-0.03, 1.03))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    return figure


def of_task(report: Report, task: str) -> list[Block]:
    """A small figure for each measure that there is, a table, and a CSV of all."""
    frames = report.results.load("rollout-viz", task, read_truncation, FILES)
    if not frames:
        return []
    report.csv("truncation", rows_of(frames))
    every = pd.concat([frame for of in frames.values() for frame in of.values()])
    pictures = []
    for measure, title in DRAWN.items():
        if every[measure].notna().any():
            name, label = f"truncation-{measure.replace('_', '-')}-{task}", f"{title} of truncation on {task}"
            pictures.append(report.picture(measure_figure(measure, frames, report.colours), name, label))
    unlabelled = [] if every["events"].max() > 0 else [Words(say("truncation", "unlabelled", task=task), "source")]
    made = table(say("truncation", "table", task=task), summarise(frames), COLUMNS, texts=3)
    return [Panels(pictures, "small"), *unlabelled, made]


SECTION = Section(
    "truncation", "Truncation quality", by_task(of_task, intro="truncation", legend=True), {"rollout-viz": FILES}
)
