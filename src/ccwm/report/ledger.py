"""The section on the paper's claims: each claim, our numbers beside it, and a verdict by a stated rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ccwm.cells import Cell
from ccwm.report import evaluation, format, learning
from ccwm.report.blocks import Block, Details, Entry, Table, Words
from ccwm.report.claims import Claim, Measure, Paper, Scale
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.statistics import Estimate, estimate, paired_difference
from ccwm.report.verdict import Verdict, tally, weigh
from ccwm.report.words import say
from ccwm.studies import embeddings, prediction, returns, transfer
from ccwm.training import history

METRICS: dict[str, Callable[[Path], Any]] = {
    "train": history.read_metrics,
    "evaluate": returns.read_metrics,
    "rollout-viz": prediction.read_metrics,
    "transfer": transfer.read_metrics,
}
"""Readers of metrics.json by stage."""
TABLES: dict[str, Callable[[Path], pd.DataFrame]] = {"embeddings.csv": embeddings.read_numbers}
"""Readers of the tables that a claim may name."""
RULES = ("greater", "comparable", "no_worse", "at_least", "tally")
"""The kinds of rule that the page explains."""
CURVES = {"area": learning.curve_area, "end": learning.curve_end}


@dataclass(frozen=True)
class Compared:
    """Our numbers on one task: each variant's mean over seeds, and the estimate that the rule looks at."""

    task: str
    means: dict[str, float]
    found: Estimate
    other: float
    """What a margin is a share of: the mean of the other variant, or the number compared with."""
    env_steps: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Line:
    """A claim on one task, or a tally on all of its tasks."""

    claim: Claim
    tasks: tuple[str, ...]
    ours: tuple[Compared, ...]
    verdict: Verdict
    reason: str

    @property
    def scale(self) -> str:
        """The fewest seeds and environment steps behind any of the numbers."""
        seeds, steps = min(of.found.n for of in self.ours), min(of.env_steps for of in self.ours)
        return f"{format.count(seeds, 'seed')}, {steps:,} steps (the paper {self.claim.env_steps:,})"


def load(results: Results, paper: Paper) -> list[Line]:
    """Every claim in the order of the file, one line for each of its tasks, a tally in one line."""
    return [
        _line(results, paper, claim, tasks)
        for claim in paper.claims
        for tasks in ([claim.tasks] if claim.rule.kind == "tally" else [[task] for task in claim.tasks])
    ]


def _line(results: Results, paper: Paper, claim: Claim, tasks: list[str]) -> Line:
    found = {task: compare(results, paper, claim, task) for task in tasks}
    ours = tuple(of for of in found.values() if of is not None)
    if missing := [task for task, of in found.items() if of is None]:
        needs = f"needs {' and '.join(claim.variants)} on {', '.join(missing)}"
        return Line(claim, tuple(tasks), ours, Verdict.NOT_RUN, f"{needs} (preset {claim.preset})")
    return Line(claim, tuple(tasks), ours, *judge(claim, ours, scale=paper.scale))


def compare(results: Results, paper: Paper, claim: Claim, task: str) -> Compared | None:
    """The claim's numbers on one task; None where the study or its results lack a variant, or the two share no seed."""
    if task not in results.study.tasks or not {*claim.variants} <= {*results.study.variants}:
        return None  # older results may lie there, but are none of this study's
    cells = {variant: results.cells("train", task=task, variant=variant) for variant in claim.variants}
    values = {
        variant: {int(cell.seed or 0): value for cell in of if (value := measure(results, claim, cell)) is not None}
        for variant, of in cells.items()
    }
    ours = values[claim.of]
    if claim.than is not None:
        theirs = values[claim.than]
    else:
        published = paper.quoted_on(task, evaluation.best_possible(results, task))
        if claim.quoted is not None and claim.quoted not in published:
            return None  # ours are of other episodes
        fixed = claim.rule.value if claim.quoted is None else published[claim.quoted]
        theirs = dict.fromkeys(ours, float(fixed or 0))
    seeds = sorted(ours.keys() & theirs.keys())
    level = theirs if claim.rule.value is None else dict.fromkeys(ours, 0.0)  # a value is weighed itself
    found = paired_difference(ours, level, confidence=claim.confidence)
    if found is None or not seeds:
        return None
    used = [cell for of in cells.values() for cell in of if cell.seed in seeds]
    return Compared(
        task,
        {variant: estimate([of[seed] for seed in seeds]).mean for variant, of in values.items()},
        found,
        estimate([theirs[seed] for seed in seeds]).mean,
        min(results.read(cell, history.read_metrics).env_steps for cell in used),
        tuple(cell.of(claim.measure.stage or "train") for cell in used),
    )


def measure(results: Results, claim: Claim, trained: Cell) -> float | None:
    """The claim's number of one trained agent; None where it is not there."""
    of = claim.measure
    cell = trained.of(of.stage or "train")
    needed = "curve.csv" if of.curve is not None else of.table or "metrics.json"
    if results.absent(cell, [needed]):
        return None
    if of.curve is not None:
        return CURVES[of.curve](results.read(cell, history.read_curve), until=claim.env_steps)
    value = _number(results, cell, of, str(of.key))
    less = 0.0 if of.minus is None else _number(results, cell, of, of.minus)
    return None if value is None or less is None else value - less


def _number(results: Results, cell: Cell, of: Measure, key: str) -> float | None:
    """One number of the cell's table or of its metrics."""
    if of.table is not None:
        frame = results.read(cell, TABLES[of.table])
        found = frame.loc[frame.iloc[:, 0] == of.row, key].dropna()
        return float(found.iloc[0]) if len(found) else None
    value: Any = results.read(cell, METRICS[str(of.stage)])
    for part in key.split("/"):
        value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
    return None if value is None else float(value)


def judge(claim: Claim, ours: Sequence[Compared], *, scale: Scale) -> tuple[Verdict, str]:
    """The verdict on numbers that are all there, with its reason; below the stated scale it is always undecided."""
    seeds, steps = min(of.found.n for of in ours), min(of.env_steps for of in ours)
    short = []
    if seeds < scale.seeds:
        short.append(f"{seeds} of at least {scale.seeds} seeds")
    if steps < scale.budget * claim.env_steps:
        short.append(f"{steps:,} of at least {scale.budget * claim.env_steps:,.0f} environment steps")
    if short:
        return Verdict.UNDECIDED, " and ".join(short)
    intervals = [(of.found.low or 0.0, of.found.high or 0.0) for of in ours]
    if claim.rule.kind == "tally":
        return tally(claim.rule, intervals)
    return weigh(claim.rule, *intervals[0], other=ours[0].other)


def ours_words(claim: Claim, of: Compared, *, named: bool) -> str:
    """`ccwm − dreamer +12.30 (95% −4.10 to 28.70; 181.0 and 168.7)`."""
    low, high = of.found.low, of.found.high
    around = "no interval" if low is None else f"{claim.confidence:.0%} {format.interval(low, high)}"
    task, mean = f"{of.task}: " if named else "", format.number(of.means[claim.of])
    against = claim.than or claim.quoted
    if against is None:
        return f"{task}{claim.of} {mean} ({around})"
    both = f"{mean} and {format.number(of.other)}"
    return f"{task}{claim.of} − {against} {format.signed(of.found.mean)} ({around}; {both})"


def summary(lines: Sequence[Line]) -> str:
    """How many claims each verdict has."""
    counts = Counter(line.verdict for line in lines)
    total = format.count(len(lines), "claim")
    if counts[Verdict.NOT_RUN] == len(lines):
        return f"Of the paper’s {total} none has been run: this study does not have their tasks and variants."
    plural = {Verdict.AGREES: "agree", Verdict.DISAGREES: "disagree"}
    said = [
        f"{n} {plural.get(verdict, verdict) if n > 1 else verdict}" for verdict in Verdict if (n := counts[verdict])
    ]
    return f"Of the paper’s {total}: {', '.join(said)}."


def claims_table(lines: Sequence[Line]) -> Table:
    """The claims as they are read; a tally has too many cells to name, and claims.csv has them."""

    def row(line: Line) -> list[Entry]:
        named = len(line.tasks) > 1
        ours = "\n".join(ours_words(line.claim, of, named=named) for of in line.ours) or format.NONE
        cells = () if named else tuple(cell for of in line.ours for cell in of.cells)
        return [
            Entry(line.verdict, line.verdict, notes=(line.reason,), style=f"verdict {line.verdict.split()[0]}"),
            Entry(line.claim.says, line.claim.says, notes=(f"{', '.join(line.tasks)} · {line.claim.where}",)),
            Entry(line.claim.printed, line.claim.printed),
            Entry(ours, ours, cells, (line.scale,) if line.ours else ()),
        ]

    return Table("", ["Verdict", "Claim", "Paper", "Ours"], [row(line) for line in lines], texts=4, style="claims")


def records(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Every number of the ledger unrounded, a row for each claim and task."""
    return [
        {
            "id": line.claim.id,
            "task": " ".join(line.tasks) if of is None else of.task,
            "says": line.claim.says,
            "where": line.claim.where,
            "printed": line.claim.printed,
            "verdict": line.verdict.value,
            "reason": line.reason,
            "of": of and of.means[line.claim.of],
            "other": of and of.other,
            "estimate": of and of.found.mean,
            "low": of and of.found.low,
            "high": of and of.found.high,
            "confidence": line.claim.confidence,
            "seeds": of and of.found.n,
            "env_steps": of and of.env_steps,
            "cells": () if of is None else of.cells,
        }
        for line in lines
        for of in (line.ours or (None,))
    ]


def build(report: Report) -> list[Block]:
    """The claims that have run, those that have not, and how a verdict is given."""
    if report.paper is None:
        return []
    lines, scale = load(report.results, report.paper), report.paper.scale
    report.csv("claims", records(lines))
    run = [line for line in lines if line.verdict is not Verdict.NOT_RUN]
    waiting = [line for line in lines if line.verdict is Verdict.NOT_RUN]
    blocks: list[Block] = [Words(say("claims", "intro", summary=summary(lines), title=report.paper.title))]
    if run:
        blocks.append(claims_table(run))
    if waiting:
        blocks.append(Details(f"{len(waiting)} not run, and what each needs", [claims_table(waiting)]))
    rule = [
        Words(say("claims", "scale", seeds=scale.seeds, budget=scale.budget)),
        *(Words(say("claims", kind), "point") for kind in RULES),
        Words(say("claims", "otherwise")),
    ]
    return [*blocks, Details("How a verdict is given", rule)]


SECTION = Section("claims", "The paper’s claims", build, {})
