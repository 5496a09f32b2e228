"""The section on evaluation: greedy returns of every variant, beside the random policy's and published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ccwm.cells import Cell
from ccwm.report import format
from ccwm.report.blocks import Block, Entry, Table
from ccwm.report.claims import Quoted
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.statistics import Estimate, Middle, average, averaged, estimate, paired_difference, stratified_iqm
from ccwm.report.table import interval, number, sortable, table, text
from ccwm.report.words import say
from ccwm.studies.returns import Metrics, read_metrics, read_returns
from ccwm.training import collect


class Evaluation(NamedTuple):
    """Greedy returns of one variant, over seeds, or over episodes where one seed ran; metrics are means over seeds."""

    variant: str
    cells: tuple[Cell, ...]
    returns: Estimate
    middle: Middle
    metrics: Metrics


class Aggregate(NamedTuple):
    """Interquartile mean of a variant's scores over the seeds of several tasks, resampled task by task."""

    variant: str
    cells: tuple[Cell, ...]
    tasks: int
    middle: Middle


def summarise(results: Results, task: str) -> list[Evaluation]:
    """One row for each variant that was evaluated on the task."""
    rows = []
    for variant, found in results.load("evaluate", task, read_metrics).items():
        means = [of.return_mean for of in found.values()]
        metrics, returns, values = averaged(list(found.values())), estimate(means), means
        if len(found) == 1:
            returns = Estimate(means[0], metrics.return_sd, metrics.return_low, metrics.return_high, 1)
            values = list(_by_episode(results, next(iter(found))).values()) or means
        rows.append(Evaluation(variant, tuple(found), returns, stratified_iqm([values]), metrics))
    return rows


def aggregate(results: Results) -> list[Aggregate]:
    """One row for each variant, over the tasks on which every variant has a score; none for fewer than two tasks."""
    variants = results.study.variants
    scores: dict[str, dict[str, dict[Cell, float]]] = {}
    for task in results.study.tasks:
        found = {
            variant: {cell: of.score for cell, of in cells.items() if of.score is not None}
            for variant, cells in results.load("evaluate", task, read_metrics).items()
        }
        if all(found.get(variant) for variant in variants):
            scores[task] = found
    if len(scores) < 2:
        return []
    return [
        Aggregate(
            variant,
            tuple(cell for of in scores.values() for cell in of[variant]),
            len(scores),
            stratified_iqm([list(of[variant].values()) for of in scores.values()]),
        )
        for variant in variants
    ]


def random_level(results: Results, task: str) -> float | None:
    """Mean return of the random policy: as evaluated, else as collected."""
    evaluated = [results.read(cell, read_metrics).random_mean for cell in results.cells("evaluate", task=task)]
    collected = [results.read(cell, collect.read_metrics).return_mean for cell in results.cells("collect", task=task)]
    return average(evaluated or collected)


def best_possible(results: Results, task: str) -> float | None:
    """The best possible return of an episode of this study; None where it is unknown."""
    return average(results.read(cell, read_metrics).best_possible for cell in results.cells("evaluate", task=task))


def return_difference(results: Results, task: str, variant: str) -> tuple[Estimate, str] | None:
    """Variant − reference in evaluated return, and what the pairs are: "seeds", or "episodes" of one seed.

    Pairs share what can be shared: the first data of a training seed, or the start of an evaluated episode.
    """
    found = results.load("evaluate", task, read_metrics)
    ours, theirs = (
        {int(cell.seed or 0): cell for cell in found.get(name, {})} for name in (variant, results.reference)
    )
    shared = sorted(ours.keys() & theirs.keys())
    if len(shared) == 1:
        by_episode = [_by_episode(results, of[shared[0]]) for of in (ours, theirs)]
        if (difference := paired_difference(*by_episode)) is not None:
            return difference, "episodes"
    means = [{seed: results.read(cell, read_metrics).return_mean for seed, cell in of.items()} for of in (ours, theirs)]
    difference = paired_difference(*means)
    return None if difference is None else (difference, "seeds")


def _by_episode(results: Results, cell: Cell) -> dict[int, float]:
    """The agent's returns by the seed of the episode."""
    if results.absent(cell, ["returns.csv"]):
        return {}
    frame = results.read(cell, read_returns)
    agent = frame[frame["policy"] == "agent"]
    return dict(zip(agent["seed"].astype(int), agent["return"].astype(float), strict=True))


def evaluation_table(task: str, rows: list[Evaluation], *, quoted: Sequence[Quoted] = ()) -> Table:
    """Greedy returns on one task; then the random policy, and what other work published."""
    several = [len(row.cells) > 1 for row in rows]
    over = "seeds" if all(several) else "episodes of one seed" if not any(several) else "seeds (episodes for one seed)"
    first = rows[0].metrics
    best = "" if first.best_possible is None else f", {format.number(first.best_possible)}"
    published = [of for of in quoted if of.speaks_of(task, first.best_possible)]
    measured = table(
        say("evaluation", "table", task=task, over=over, best=best, quoted=_quoted_words(task, quoted, published)),
        rows,
        [
            ("Variant", lambda row: text(row.variant)),
            (
                "Return (mean ± sd)",
                lambda row: sortable(format.spread(*row.returns[:2]), row.returns.mean),
            ),
            ("95% interval", lambda row: interval(row.returns.low, row.returns.high)),
            ("IQM", lambda row: number(row.middle.iqm)),
            ("95% of IQM", lambda row: interval(row.middle.low, row.middle.high)),
            ("Score", lambda row: number(row.metrics.score)),
            ("Success", lambda row: number(row.metrics.success_rate)),
            ("Episodes", lambda row: number(row.metrics.episodes * len(row.cells), format.whole)),
        ],
    )

    def line(**fields: Entry) -> list[Entry]:
        return [fields.get(heading.split()[0], Entry(format.NONE)) for heading in measured.headings]

    random = sortable(format.spread(first.random_mean, first.random_sd), first.random_mean)
    chance = line(Variant=text("random policy"), Return=random, Score=number(None if first.score is None else 0.0))
    if "95% interval" in measured.headings:
        chance[measured.headings.index("95% interval")] = interval(first.random_low, first.random_high)
    measured.rows.append(chance)
    for of in published:
        name = Entry(f"{of.method}, quoted", of.method)
        measured.rows.append(line(Variant=name, Return=number(of.returns[task])))
    return measured


def _quoted_words(task: str, known: Sequence[Quoted], published: Sequence[Quoted]) -> str:
    if published:
        each = [f"{of.method} from {of.inputs} at {format.scientific(of.env_steps)} steps" for of in published]
        return say("evaluation", "quoted", methods=format.listing(each), source=published[0].source)
    others = [of for of in known if task in of.returns] or list(known)
    if not others:
        return ""
    name = "other_episodes" if task in others[0].returns else "none"
    methods, best = format.listing([of.method for of in others]), format.number(others[0].best_possible)
    return say("evaluation", name, methods=methods, best=best)


def aggregate_table(rows: list[Aggregate]) -> Table:
    """Scores over all tasks."""
    return table(
        say("evaluation", "aggregate", tasks=rows[0].tasks),
        rows,
        [
            ("Variant", lambda row: text(row.variant)),
            ("IQM of score", lambda row: number(row.middle.iqm)),
            ("95% interval", lambda row: interval(row.middle.low, row.middle.high)),
            ("Agents", lambda row: number(len(row.cells), format.whole)),
        ],
    )


def record(row: Evaluation) -> dict[str, Any]:
    """A row for ``evaluation.csv``."""
    over = {"mean": row.returns.mean, "sd": row.returns.sd, "low": row.returns.low, "high": row.returns.high}
    middle = {"iqm": row.middle.iqm, "iqm_low": row.middle.low, "iqm_high": row.middle.high}
    return {"variant": row.variant, "cells": row.cells, **over, **middle, **row.metrics._asdict()}


def build(report: Report) -> list[Block]:
    """A table over all tasks, and one for each."""
    results = report.results
    rows = {task: found for task in results.study.tasks if (found := summarise(results, task))}
    report.csv("evaluation", [{"task": task, **record(row)} for task, of in rows.items() for row in of])
    together = aggregate(results)
    report.csv("aggregate", [{**row._asdict(), **row.middle._asdict()} for row in together])
    quoted = report.paper.quoted if report.paper is not None else ()
    each = [evaluation_table(task, of, quoted=quoted) for task, of in rows.items()]
    return [*([aggregate_table(together)] if together else []), *each]


SECTION = Section("evaluation", "Evaluation", build, {"evaluate": ("returns.csv",)})
