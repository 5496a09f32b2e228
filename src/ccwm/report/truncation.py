"""The section on truncation quality: the mask against the world's truth, over η, by both rules and the agent's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from ccwm.report import words
from ccwm.report.curves import over_seeds
from ccwm.report.figures import STYLE
from ccwm.report.results import Cell, Results, average, finite
from ccwm.report.retracing import Save
from ccwm.report.tables import Entry, Table, sources

FILES = ["truncation.csv"]
MEASURES = {
    "truncated_share": "share truncated",
    "precision": "precision (states)",
    "recall": "recall (states)",
    "event_precision": "precision (events)",
    "event_recall": "recall (events)",
}
COLUMNS = ["rule", "threshold", "own", "events", "true_share", *MEASURES, "f1", "event_f1"]
LINES = {"prose": "-", "algorithm1": ":"}

Frames = dict[str, dict[Cell, pd.DataFrame]]


def truncation_section(study: Results, folder: Path, colours: Mapping[str, str], save: Save) -> list[dict[str, Any]]:
    """For every task that has any: a small figure for each measure that there is, a table, and a CSV of all."""
    shown, everything = [], []
    for task in study.tasks:
        frames: Frames = {}
        for variant in study.variants:
            cells = study.cells("rollout-viz", task=task, variant=variant)
            found = {cell: frame for cell in cells if (frame := cell.table(FILES[0], COLUMNS)) is not None}
            if found:
                frames[variant] = found
        if not frames:
            continue
        every = [frame for of in frames.values() for frame in of.values()]
        everything += [
            frame.assign(task=task, variant=variant, seed=cell.seed, cells=cell.name)
            for variant, of in frames.items()
            for cell, frame in of.items()
        ]
        measures = [name for name in MEASURES if any(frame[name].notna().any() for frame in every)]
        shown.append(
            {
                "task": task,
                "truth": any(frame["events"].max() > 0 for frame in every),
                "figures": {
                    name: save(_measure_figure(name, frames, colours), f"truncation-{name.replace('_', '-')}-{task}")
                    for name in measures
                },
                "table": _table(task, frames),
            }
        )
    if everything:
        pd.concat(everything).to_csv(folder / "tables" / "truncation.csv", index=False, lineterminator="\n")
    return shown


@mpl.rc_context(STYLE)
def _measure_figure(measure: str, frames: Frames, colours: Mapping[str, str]) -> Figure:
    """One measure against η: a line for each variant and rule, a dot at each agent's own η."""
    figure = Figure(figsize=(2.9, 2.1))
    axes = figure.add_subplot()
    for variant, of in frames.items():
        for rule, line in LINES.items():
            curve = over_seeds([frame[frame["rule"] == rule] for frame in of.values()], "threshold", measure)
            if curve is not None:
                axes.plot(curve.x, curve.mean, color=colours[variant], lw=1.5, ls=line)
        for frame in of.values():
            own = frame[frame["own"]]
            axes.plot(own["threshold"], own[measure], "o", color=colours[variant], ms=5, mew=0)
    axes.set(xscale="log", title=MEASURES[measure], xlabel="η", ylim=(-0.03, 1.03))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    return figure


def _table(task: str, frames: Frames) -> Table:
    rows = []
    for variant, of in frames.items():
        rows.append(_row(variant, "own", {cell: frame[frame["own"]] for cell, frame in of.items()}))
        if (best := _best(list(of.values()))) is not None:
            chosen = {
                cell: frame[(frame["rule"] == "prose") & (frame["threshold"] == best)] for cell, frame in of.items()
            }
            rows.append(_row(variant, "best", chosen))
    return Table(
        f"{task}: the mask over whole held-out and exploring episodes, means over seeds. Own: the rule and η of the "
        "variant's settings, whether it truncates or not; best: the η of the sweep with the highest F1 of events. True "
        "states are both ends of a transition that cannot be undone; a detection is a run of states that are not kept, "
        "and right where it touches such a transition; an event is found where its transition leaves the loss. True "
        "share is the precision of a mask that knows nothing.",
        [
            "Variant",
            "η of",
            "Rule",
            "η",
            "Truncated",
            "True share",
            "Precision",
            "Recall",
            "F1",
            "Precision (events)",
            "Recall (events)",
            "F1 (events)",
            "Events",
            "Runs",
        ],
        rows,
        texts=3,
    ).without_empty_columns()


def _best(frames: list[pd.DataFrame]) -> float | None:
    """The η, of those that every seed has, with the highest mean F1 of events by the prose; None without a truth."""
    prose = [frame[frame["rule"] == "prose"].set_index("threshold")["event_f1"] for frame in frames]
    together = pd.concat(prose, axis=1, join="inner").mean(axis=1).dropna()
    return float(together.index[int(together.to_numpy().argmax())]) if len(together) else None


def _row(variant: str, which: str, found: dict[Cell, pd.DataFrame]) -> list[Entry]:
    lines = [frame.iloc[0] for frame in found.values() if len(frame)]

    def mean(key: str) -> Entry:
        value = average([finite(float(line[key])) for line in lines])
        return Entry(words.number(value), "" if value is None else value)

    keys = ("threshold", "truncated_share", "true_share", "precision", "recall", "f1")
    events = sum(int(line["events"]) for line in lines)
    return [
        Entry(variant, variant),
        Entry(which, which),
        Entry(", ".join(dict.fromkeys(str(line["rule"]) for line in lines)) or words.NONE),
        *(mean(key) for key in (*keys, "event_precision", "event_recall", "event_f1")),
        Entry(f"{events:,}", float(events)),
        sources(list(found)),
    ]
