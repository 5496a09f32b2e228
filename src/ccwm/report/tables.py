"""Summaries as tables: for people in the page, and unrounded as CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import urlsplit

import pandas as pd

from ccwm.report import words
from ccwm.report.claims import Quoted
from ccwm.report.learning import Learning
from ccwm.report.results import STAGES, Cell, Results, is_dirty
from ccwm.report.summaries import Aggregate, Cost, Evaluation, Prediction


class Entry(NamedTuple):
    """One field of a table: its text, what it sorts by, and the runs that it links to as (label, anchor)."""

    text: str
    sort: float | str = ""
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Table:
    """Headings, rows of entries, and the caption that says how to read them; the first ``texts`` columns are words."""

    caption: str
    headings: list[str]
    rows: list[list[Entry]]
    texts: int = 1

    def without_empty_columns(self) -> Table:
        """The same table without the columns that nobody measured."""
        kept = [i for i in range(len(self.headings)) if any(row[i].text != words.NONE for row in self.rows)]
        return replace(
            self, headings=[self.headings[i] for i in kept], rows=[[row[i] for i in kept] for row in self.rows]
        )


def anchor(cell: Cell) -> str:
    """The id of a cell's row in the list of runs."""
    return "run-" + re.sub(r"[^A-Za-z0-9_-]", "-", cell.name)


def sources(cells: Sequence[Cell]) -> Entry:
    """Links to the runs that a number comes from, by seed."""
    return Entry(
        ", ".join(str(cell.seed) for cell in cells), "", tuple((str(cell.seed), anchor(cell)) for cell in cells)
    )


def evaluation_table(task: str, rows: list[Evaluation], *, quoted: Sequence[Quoted] = ()) -> Table:
    """Greedy returns on one task; then the random policy, and what other work published."""
    several = [len(row.cells) > 1 for row in rows]
    over = "seeds" if all(several) else "episodes of one seed" if not any(several) else "seeds (episodes for one seed)"
    body = [
        [
            Entry(row.variant, row.variant),
            Entry(words.spread(row.mean, row.sd), row.mean),
            Entry(words.interval(row.low, row.high), sort_key(row.low)),
            entry(row.iqm),
            Entry(words.interval(row.iqm_low, row.iqm_high), sort_key(row.iqm_low)),
            entry(row.score),
            entry(row.success_rate),
            Entry(f"{row.episodes:,}", row.episodes),
            sources(row.cells),
        ]
        for row in rows
    ]
    first, dash = rows[0], Entry(words.NONE)
    if first.random_mean is not None:
        spread, interval = words.spread(first.random_mean, first.random_sd), (first.random_low, first.random_high)
        body.append(
            [
                Entry("random policy", "random policy"),
                Entry(spread, first.random_mean),
                Entry(words.interval(*interval), sort_key(interval[0])),
                *[dash, dash, entry(None if first.score is None else 0.0), dash, dash, dash],
            ]
        )
    published = [of for of in quoted if of.speaks_of(task, first.best_possible)]
    for of in published:
        body.append([Entry(f"{of.method}, quoted", of.method), entry(of.returns[task]), *[dash] * 7])
    best = "" if first.best_possible is None else f", {words.number(first.best_possible)}"
    others = _quoted_words(task, quoted, published)
    return Table(
        f"{task}: return of the greedy agent. Spread and 95% interval are over {over}, those of "
        "the random policy over its episodes; IQM is the interquartile mean, with a bootstrap interval; "
        f"score is 0 for the random policy and 1 for the best possible return{best}.{others}",
        ["Variant", "Return (mean ± sd)", "95% interval", "IQM", "95% of IQM", "Score", "Success", "Episodes", "Runs"],
        body,
    ).without_empty_columns()


def _quoted_words(task: str, known: Sequence[Quoted], published: Sequence[Quoted]) -> str:
    if published:
        each = [f"{of.method} from {of.inputs} at {words.scientific(of.env_steps)} steps" for of in published]
        return f" Quoted, not measured here: {words.listing(each)} ({published[0].source})."
    if others := [of for of in known if task in of.returns]:
        best = words.number(others[0].best_possible)
        methods = words.listing([of.method for of in others])
        return (
            f" What {methods} published is of episodes with a best possible return of {best}, and is not quoted here."
        )
    return f" Nothing is quoted for this task from {words.listing([of.method for of in known])}." if known else ""


def prediction_table(task: str, rows: list[Prediction]) -> Table:
    """Open-loop prediction on one task."""
    return Table(
        f"{task}: {rows[0].context} frames seen, then {rows[0].horizon} steps predicted from actions alone on held-out "
        "episodes. Useful steps: how long the mean error over episodes stays below that of the last seen frame, "
        "repeated; median: how long it does in the median episode; informed: how long it stays below that of the mean "
        "of all frames to predict, the best constant guess (several seeds are averaged). Error: MSE per pixel; SSIM: "
        "structural similarity, 1 for the same; in brackets those of the frozen last frame.",
        [
            "Variant",
            "Useful steps",
            "95% interval",
            "Median",
            "Informed",
            "95% interval",
            "Error",
            "SSIM",
            "Episodes",
            "Runs",
        ],
        [
            [
                Entry(row.variant, row.variant),
                entry(row.useful_steps, words.steps),
                Entry(words.interval(row.useful_low, row.useful_high, words.steps), sort_key(row.useful_low)),
                entry(row.useful_median, words.steps),
                entry(row.informed_steps, words.steps),
                Entry(words.interval(row.informed_low, row.informed_high, words.steps), sort_key(row.informed_low)),
                Entry(words.beside(row.error, row.baseline_error), sort_key(row.error)),
                Entry(words.beside(row.ssim, row.baseline_ssim), sort_key(row.ssim)),
                Entry(f"{row.episodes:,}", row.episodes),
                sources(row.cells),
            ]
            for row in rows
        ],
    ).without_empty_columns()


def learning_table(task: str, rows: list[Learning]) -> Table:
    """The learning curves of one task in numbers."""
    target = rows[0].target
    reach = "" if target is None else f" Steps to {words.number(target)}"
    several = any(len(row.cells) > 1 for row in rows)
    return Table(
        f"{task}: mean height of the learning curve (its area divided by its width) and mean of its last tenth"
        f"{', with 95% intervals over seeds' if several else ''}."
        + (
            ""
            if target is None
            else " Steps: environment steps to the first evaluation at that return, median over seeds."
        ),
        [
            "Variant",
            "Mean height",
            "95% interval",
            "Last tenth",
            "95% interval",
            reach.strip() or "Steps",
            "Reached",
            "Runs",
        ],
        [
            [
                Entry(row.variant, row.variant),
                entry(row.area),
                Entry(words.interval(row.area_low, row.area_high), sort_key(row.area_low)),
                entry(row.end),
                Entry(words.interval(row.end_low, row.end_high), sort_key(row.end_low)),
                Entry(
                    "not reached" if row.target is not None and row.steps is None else words.whole(row.steps),
                    sort_key(row.steps),
                ),
                Entry(
                    words.NONE if row.reached is None else f"{row.reached} of {len(row.cells)}", sort_key(row.reached)
                ),
                sources(row.cells),
            ]
            for row in rows
        ],
    ).without_empty_columns()


def aggregate_table(rows: list[Aggregate]) -> Table:
    """Scores over all tasks."""
    return Table(
        f"Score over {rows[0].tasks} tasks: interquartile mean over all seeds of all tasks, with a 95% stratified "
        "bootstrap interval (seeds are drawn anew within each task). 0 is the random policy, 1 the best possible.",
        ["Variant", "IQM of score", "95% interval", "Agents"],
        [
            [
                Entry(row.variant, row.variant),
                entry(row.iqm),
                Entry(words.interval(row.iqm_low, row.iqm_high), sort_key(row.iqm_low)),
                Entry(str(len(row.cells)), len(row.cells)),
            ]
            for row in rows
        ],
    )


def cost_table(rows: list[Cost]) -> Table:
    """Time, throughput and memory of every stage."""
    return Table(
        "Means over seeds; memory is the most that any seed took.",
        ["Stage", "Task", "Variant", "Device", "Time", "Frames/s", "Updates/s", "Memory (MB)", "Runs"],
        [
            [
                Entry(row.stage, float(STAGES.index(row.stage))),
                Entry(row.task, row.task),
                Entry(row.variant or "all", row.variant or ""),
                Entry(row.device or words.NONE, row.device),
                Entry(words.duration(row.seconds), sort_key(row.seconds)),
                entry(row.env_steps_per_second),
                entry(row.updates_per_second),
                entry(row.peak_memory_mb),
                sources(row.cells),
            ]
            for row in rows
        ],
        texts=4,
    ).without_empty_columns()


class Run(NamedTuple):
    """Where one result comes from."""

    stage: str
    run_id: str
    experiment: str
    store: str
    commit: str
    dirty: bool
    settings_hash: str
    anchor: str


def provenance(results: Results) -> list[Run]:
    """The run behind every result that is there."""
    return [
        Run(
            stage=cell.name,
            run_id=str(run.get("run_id") or words.NONE),
            experiment=str(run.get("experiment") or words.NONE),
            store=public_store(run.get("tracking_uri")),
            commit=str(run.get("commit") or words.NONE),
            dirty=is_dirty(run),
            settings_hash=str(run.get("settings_hash") or words.NONE),
            anchor=anchor(cell),
        )
        for stage in STAGES
        for cell in results.cells(stage)
        for run in [cell.run()]
    ]


def public_store(uri: str | None) -> str:
    """A tracking store that may be shown: without a password, and without this machine's folders."""
    if not uri:
        return words.NONE
    parts = urlsplit(uri)
    if parts.hostname and parts.scheme in ("http", "https"):
        return parts.hostname + (f":{parts.port}" if parts.port else "")
    return f"{parts.scheme.split('+')[0] or 'file'}: {Path(parts.path).name}"


class Row(Protocol):
    """A summary: a dataclass that names the cells it comes from."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Where the numbers come from."""


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write summaries unrounded, their cells as DVC names; no file where there is no row."""
    if rows:
        columns = [field.name for field in fields(rows[0])]
        records = [{**asdict(row), "cells": " ".join(cell.name for cell in row.cells)} for row in rows]
        pd.DataFrame(records, columns=columns).to_csv(path, index=False, lineterminator="\n")


def entry(value: float | None, form: words.Form = words.number) -> Entry:
    """A number in words that sorts by itself; a dash for None."""
    return Entry(form(value), sort_key(value))


def sort_key(value: float | None) -> float | str:
    """What a number sorts by; what is missing stays last."""
    return "" if value is None else value
