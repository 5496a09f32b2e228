"""Summaries as tables: for people in the page, and unrounded as CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pandas as pd

from ccwm.report import words
from ccwm.report.results import STAGES, Cell, Results
from ccwm.report.summaries import UNCHANGED, Cost, Evaluation, Prediction, Transfer


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


def evaluation_table(task: str, rows: list[Evaluation]) -> Table:
    """Greedy returns on one task, the random policy in the last row."""
    several = [len(row.cells) > 1 for row in rows]
    over = "seeds" if all(several) else "episodes of one seed" if not any(several) else "seeds (episodes for one seed)"
    body = [
        [
            Entry(row.variant, row.variant),
            Entry(words.spread(row.mean, row.sd), row.mean),
            Entry(words.interval(row.low, row.high), _key(row.low)),
            _entry(row.iqm),
            _entry(row.score),
            _entry(row.success_rate),
            Entry(f"{row.episodes:,}", row.episodes),
            sources(row.cells),
        ]
        for row in rows
    ]
    first = rows[0]
    if first.random_mean is not None:
        spread, interval = words.spread(first.random_mean, first.random_sd), (first.random_low, first.random_high)
        dash = Entry(words.NONE)
        body.append(
            [
                Entry("random policy", "random policy"),
                Entry(spread, first.random_mean),
                Entry(words.interval(*interval), _key(interval[0])),
                *[dash, _entry(None if first.score is None else 0.0), dash, dash, dash],
            ]
        )
    best = "" if first.best_possible is None else f", {words.number(first.best_possible)}"
    return Table(
        f"{task}: return of the greedy agent. Spread and 95% interval are over {over}, those of "
        "the random policy over its episodes; IQM is the interquartile mean; "
        f"score is 0 for the random policy and 1 for the best possible return{best}.",
        ["Variant", "Return (mean ± sd)", "95% interval", "IQM", "Score", "Success", "Episodes", "Runs"],
        body,
    ).without_empty_columns()


def prediction_table(task: str, rows: list[Prediction]) -> Table:
    """Open-loop prediction on one task."""
    return Table(
        f"{task}: {rows[0].context} frames seen, then {rows[0].horizon} steps predicted from actions alone on held-out "
        "episodes. Useful steps: how long the prediction stays better than the last seen frame, repeated (median over "
        "episodes). Error: MSE per pixel.",
        ["Variant", "Useful steps", "95% interval", "Error", "Frozen frame's error", "Episodes", "Runs"],
        [
            [
                Entry(row.variant, row.variant),
                Entry(words.steps(row.useful_steps), _key(row.useful_steps)),
                Entry(words.interval(row.useful_low, row.useful_high, words.steps), _key(row.useful_low)),
                _entry(row.error),
                _entry(row.baseline_error),
                Entry(f"{row.episodes:,}", row.episodes),
                sources(row.cells),
            ]
            for row in rows
        ],
    )


def transfer_table(task: str, rows: list[Transfer], *, variants: list[str]) -> Table:
    """Returns in changed worlds: a row of changes a line, the first variant as the reference."""
    reference, *others = variants
    headings = ["Changed", reference]
    for other in others:
        headings += [other, f"{other} − {reference}", "p"]
    by_row: dict[str, dict[str, Transfer]] = {}
    for row in rows:
        by_row.setdefault(row.row, {})[row.variant] = row
    body = []
    for i, (name, of) in enumerate(by_row.items()):
        line = [Entry("nothing" if name == UNCHANGED else name, float(i)), _transferred(of.get(reference))]
        for other in others:
            found = of.get(other)
            difference, p = (found.difference, found.p) if found is not None else (None, None)
            line += [
                _transferred(found),
                Entry(words.signed(difference), _key(difference)),
                Entry(words.p_value(p), _key(p)),
            ]
        body.append(line)
    test = f" p: Welch's one-sided test that the variant is no better than {reference}, over changed worlds."
    seeds = " The worlds of a seed share one agent, so p says nothing about another training run."
    return Table(
        f"{task}: return (mean ± sd over changed worlds) with no further training, in the original reward's scale. "
        "R reward, M mass, F friction, S stiffness, L layout; the agent never sees a reward, so R alone is the sanity "
        f"check and should equal the unchanged world.{test + seeds if others else ''}",
        headings,
        body,
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
                Entry(words.duration(row.seconds), _key(row.seconds)),
                _entry(row.env_steps_per_second),
                _entry(row.updates_per_second),
                _entry(row.peak_memory_mb),
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
    dirty: bool | None
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
            dirty=run.get("dirty"),
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


def write_csv(path: Path, rows: Sequence[Evaluation | Prediction | Transfer | Cost]) -> None:
    """Write summaries unrounded, their cells as DVC names; no file where there is no row."""
    if rows:
        columns = [field.name for field in fields(rows[0])]
        records = [{**asdict(row), "cells": " ".join(cell.name for cell in row.cells)} for row in rows]
        pd.DataFrame(records, columns=columns).to_csv(path, index=False, lineterminator="\n")


def _transferred(row: Transfer | None) -> Entry:
    if row is None:
        return Entry(words.NONE)
    return Entry(f"{words.spread(row.mean, row.sd)} (n = {row.n})", row.mean)


def _entry(value: float | None) -> Entry:
    return Entry(words.number(value), _key(value))


def _key(value: float | None) -> float | str:
    return "" if value is None else value
