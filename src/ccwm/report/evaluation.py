"""The section on evaluation: greedy returns of every variant, beside the random policy's and published ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ccwm.cells import Cell
from ccwm.report import figures, format
from ccwm.report.blocks import Block, Panels, Table
from ccwm.report.claims import Quoted
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.statistics import (
    Curve,
    Estimate,
    average,
    estimate,
    paired_difference,
    performance_profile,
    probability_of_improvement,
    stratified_iqm,
)
from ccwm.report.table import Column, Row, averaged, rows_of, table
from ccwm.report.words import say
from ccwm.studies.returns import read_metrics, read_returns
from ccwm.training import collect

FILES = ("returns.csv",)
COLUMNS = (
    Column("Variant", "variant"),
    Column("Return (mean ± sd)", ("mean", "sd"), format.spread),
    Column("95% interval", ("low", "high"), format.interval),
    Column("IQM", "iqm"),
    Column("95% of IQM", ("iqm_low", "iqm_high"), format.interval),
    Column("Score", "score"),
    Column("Success", "success_rate"),
    Column("Episodes", "episodes", format.whole),
)
AGGREGATE = (
    Column("Variant", "variant"),
    Column("IQM of score", "iqm"),
    Column("95% interval", ("iqm_low", "iqm_high"), format.interval),
    Column("P(improvement)", "improvement"),
    Column("95% interval", ("improvement_low", "improvement_high"), format.interval),
    Column("Agents", "agents"),
)
THRESHOLDS = np.linspace(0, 1, 51)
"""Scores at which a performance profile is drawn."""


def summarise(results: Results, task: str) -> list[Row]:
    """One row for each variant: greedy returns over seeds, or over episodes where one seed ran, and mean metrics."""
    found = results.load("evaluate", task, read_metrics)
    rows = []
    for metrics in averaged(rows_of(found), "task", "variant"):
        means = [of.return_mean for of in found[metrics["variant"]].values()]
        returns, values = estimate(means), means
        if len(means) == 1:
            returns = Estimate(n=1, **{of: metrics[f"return_{of}"] for of in ("mean", "sd", "low", "high")})
            values = list(_by_episode(results, metrics["cells"][0]).values()) or means
        rows.append({**metrics, **returns._asdict(), **stratified_iqm([values])._asdict()})
    return rows


def scores(results: Results) -> dict[str, list[list[Row]]]:
    """The rows of agents with a score, by variant and task: all of those variants on all of those tasks.

    Where some variants have run on few tasks, it is the variants and tasks that make the most cells of the matrix.
    """
    tasks = [rows_of(results.load("evaluate", task, read_metrics)) for task in results.study.tasks]
    scored = [[row for row in rows if row["score"] is not None] for rows in tasks]
    have = [{row["variant"] for row in rows} for rows in scored]

    def size(chosen: tuple[str, ...]) -> tuple[int, int]:
        there = sum({*chosen} <= variants for variants in have)
        return there * len(chosen), len(chosen)

    others = [variant for variant in results.study.variants if variant != results.reference]
    subsets = (subset for count in range(len(others) + 1) for subset in combinations(others, count))
    best = max(((results.reference, *subset) for subset in subsets), key=size)
    shared = [rows for rows, variants in zip(scored, have, strict=True) if {*best} <= variants]
    variants = [variant for variant in results.study.variants if variant in best]
    return {of: [[row for row in rows if row["variant"] == of] for rows in shared] for of in variants}


def values(tasks: list[list[Row]]) -> list[list[float]]:
    """The scores alone."""
    return [[row["score"] for row in rows] for rows in tasks]


def aggregate(results: Results) -> list[Row]:
    """Each variant over all shared tasks: interquartile mean, and probability of improvement on the reference.

    None for fewer than two tasks.
    """
    found, made = scores(results), []
    reference = found[results.reference]
    if len(reference) < 2:
        return []
    for variant, tasks in found.items():
        cells = tuple(cell for rows in tasks for row in rows for cell in row["cells"])
        row = {"variant": variant, "cells": cells, "tasks": len(tasks), "agents": len(cells)}
        row |= stratified_iqm(values(tasks))._asdict()
        if variant != results.reference:
            row |= probability_of_improvement(values(tasks), values(reference))._asdict()
        made.append(row)
    return made


def over_tasks(report: Report, results: Results, rows: list[Row], name: str) -> list[Block]:
    """A table of all tasks together, and the performance profile of every variant."""
    colours = figures.variant_colours(results.study.variants, report.colours)
    (figure, axes), shares = figures.panel(), dict[str, Curve]()
    for variant, tasks in scores(results).items():
        share, low, high = performance_profile(values(tasks), THRESHOLDS)
        shares[variant] = Curve(THRESHOLDS, share, None, len(tasks))
        axes.fill_between(THRESHOLDS, low, high, color=colours[variant], alpha=0.18, lw=0)
    figures.draw_curves(axes, shares, colours)
    axes.set(title="performance profile", xlabel="score", ylabel="share of agents above", xlim=(0, 1), ylim=(0, 1))
    figures.shared_legend(figure)
    caption = say("evaluation", "aggregate", tasks=rows[0]["tasks"], reference=results.reference)
    shown = {row["variant"] for row in rows}
    if lacking := [variant for variant in results.study.variants if variant not in shown]:
        caption += " " + say("evaluation", "lacking", variants=format.listing(lacking))
    picture = report.picture(figure, name, "Share of agents above each score", note=say("evaluation", "profile"))
    return [table(caption, rows, AGGREGATE), Panels([picture])]


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
    pair = [{cell.seed: cell for cell in found.get(name, ())} for name in (variant, results.reference)]
    shared = [*(pair[0].keys() & pair[1].keys())]
    if len(shared) == 1:
        by_episode = paired_difference(*(_by_episode(results, of[shared[0]]) for of in pair))
        if by_episode is not None:
            return by_episode, "episodes"
    means = ({seed: results.read(cell, read_metrics).return_mean for seed, cell in of.items()} for of in pair)
    by_seed = paired_difference(*means)
    return None if by_seed is None else (by_seed, "seeds")


def _by_episode(results: Results, cell: Cell) -> dict[int, float]:
    """The agent's returns by the seed of the episode."""
    if results.absent(cell, FILES):
        return {}
    frame = results.read(cell, read_returns)
    agent = frame[frame["policy"] == "agent"]
    return dict(zip(agent["seed"].astype(int), agent["return"].astype(float), strict=True))


def evaluation_table(task: str, rows: list[Row], *, quoted: Sequence[Quoted] = ()) -> Table:
    """Greedy returns on one task; then the random policy, and what other work published."""
    several = {len(row["cells"]) > 1 for row in rows}
    over = (
        "seeds (episodes for one seed)" if len(several) > 1 else "seeds" if True in several else "episodes of one seed"
    )
    first = rows[0]
    best = "" if first["best_possible"] is None else f", {format.number(first['best_possible'])}"
    published = [of for of in quoted if of.speaks_of(task, first["best_possible"])]
    chance = {name: first[f"random_{name}"] for name in ("mean", "sd", "low", "high")}
    lines = [
        *({**row, "episodes": row["episodes"] * len(row["cells"])} for row in rows),
        {"variant": "random policy", **chance, "score": None if first["score"] is None else 0.0},
        *({"variant": f"{of.method}, quoted", "mean": of.returns[task]} for of in published),
    ]
    words = _quoted_words(task, quoted, published)
    return table(say("evaluation", "table", task=task, over=over, best=best, quoted=words), lines, COLUMNS)


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


def build(report: Report) -> list[Block]:
    """A table over all tasks, and one for each."""
    together, blocks = aggregate(report.results), list[Block]()
    report.csv("aggregate", together)
    if together:
        blocks += over_tasks(report, report.results, together, "profile")
    for task in report.results.study.tasks:
        if rows := summarise(report.results, task):
            report.csv("evaluation", rows)
            quoted = report.paper.quoted if report.paper is not None else ()
            blocks.append(evaluation_table(task, rows, quoted=quoted))
    return blocks


SECTION = Section("evaluation", "Evaluation", build, {"evaluate": FILES})
