"""The section on truncation quality: the mask against the true labels, over η, by both rules and the agent's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from ccwm.cells import Cell
from ccwm.report import figures, format
from ccwm.report.blocks import Block, Entry, Legend, Panels, Table, Words
from ccwm.report.section import Report, Section
from ccwm.report.statistics import average, over_seeds
from ccwm.report.table import number, table, text
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
LISTED = {
    "threshold": "η",
    "truncated_share": "Truncated",
    "true_share": "True share",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "event_precision": "Precision (events)",
    "event_recall": "Recall (events)",
    "event_f1": "F1 (events)",
}
"""Measures with a column of the table."""
LINES = {"prose": "-", "algorithm1": ":"}
Frames = dict[str, dict[Cell, pd.DataFrame]]


class Row(NamedTuple):
    """One variant at its own η or at the best one, averaged over seeds."""

    variant: str
    which: str
    rule: str
    cells: tuple[Cell, ...]
    measures: dict[str, float | None]
    events: int


def summarise(frames: Frames) -> list[Row]:
    """Each variant at its own η, and at the best one by the prose where there are labels to judge by."""
    rows = []
    for variant, of in frames.items():
        rows.append(_row(variant, "own", {cell: frame[frame["own"]] for cell, frame in of.items()}))
        if (best := best_threshold(list(of.values()))) is not None:
            chosen = {
                cell: frame[(frame["rule"] == "prose") & (frame["threshold"] == best)] for cell, frame in of.items()
            }
            rows.append(_row(variant, "best", chosen))
    return rows


def best_threshold(frames: list[pd.DataFrame]) -> float | None:
    """The η, of those that every seed has, with the highest mean F1 of events by the prose; None without labels."""
    prose = [frame[frame["rule"] == "prose"].set_index("threshold")["event_f1"] for frame in frames]
    together = pd.concat(prose, axis=1, join="inner").mean(axis=1).dropna()
    return float(together.index[int(together.to_numpy().argmax())]) if len(together) else None


def _row(variant: str, which: str, found: dict[Cell, pd.DataFrame]) -> Row:
    lines = [frame.iloc[0] for frame in found.values() if len(frame)]
    return Row(
        variant,
        which,
        ", ".join(dict.fromkeys(str(line["rule"]) for line in lines)) or format.NONE,
        tuple(found),
        {key: average(float(line[key]) for line in lines) for key in LISTED},
        sum(int(line["events"]) for line in lines),
    )


def truncation_table(task: str, rows: list[Row]) -> Table:
    """Truncation at the own and at the best η."""

    def measure(key: str) -> Callable[[Row], Entry]:
        return lambda row: number(row.measures[key])

    return table(
        say("truncation", "table", task=task),
        rows,
        [
            ("Variant", lambda row: text(row.variant)),
            ("η of", lambda row: text(row.which)),
            ("Rule", lambda row: text(row.rule)),
            *((heading, measure(key)) for key, heading in LISTED.items()),
            ("Events", lambda row: number(row.events, format.whole)),
        ],
        texts=3,
    )


@figures.styled
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


def build(report: Report) -> list[Block]:
    """A small figure for each measure that there is, a table, and a CSV of all."""
    everything: list[pd.DataFrame] = []

    def of_task(task: str) -> list[Block]:
        frames = report.results.load("rollout-viz", task, read_truncation, FILES)
        every = [
            frame.assign(task=task, variant=variant, seed=cell.seed, cells=str(cell))
            for variant, of in frames.items()
            for cell, frame in of.items()
        ]
        if not every:
            return []
        everything.extend(every)
        pictures = [
            report.picture(
                measure_figure(name, frames, report.colours),
                f"truncation-{name.replace('_', '-')}-{task}",
                f"{title} of truncation on {task}",
            )
            for name, title in DRAWN.items()
            if any(frame[name].notna().any() for frame in every)
        ]
        note = say("truncation", "unlabelled", task=task)
        unlabelled = [] if any(frame["events"].max() > 0 for frame in every) else [Words(note, "source")]
        return [Panels([*pictures], "small"), *unlabelled, truncation_table(task, summarise(frames))]

    blocks = report.by_task(of_task)
    if not blocks:
        return []
    report.csv("truncation", pd.concat(everything))
    return [Words(say("truncation", "intro")), Legend(report.colours), *blocks]


SECTION = Section("truncation", "Truncation quality", build, {"rollout-viz": FILES})
