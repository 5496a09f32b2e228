"""The section on the paper's claims: each claim, our numbers beside it, and a verdict by a stated rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ccwm.cells import Cell
from ccwm.report import evaluation, format, learning
from ccwm.report.baseline import UNKNOWN, is_normal
from ccwm.report.blocks import Block, Details, Entry, Table, Words
from ccwm.report.claims import Claim, Measure, Paper, Tier, Tiers
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.sources import OWN, Source
from ccwm.report.statistics import estimate, paired_difference
from ccwm.report.table import Row
from ccwm.report.verdict import Verdict, tally, weigh
from ccwm.report.words import say
from ccwm.studies import embeddings, prediction, returns, transfer
from ccwm.training import history

METRICS = {"train": history, "evaluate": returns, "rollout-viz": prediction, "transfer": transfer}
"""What reads metrics.json of each stage."""
TABLES: dict[str, Callable[[Path], pd.DataFrame]] = {"embeddings.csv": embeddings.read_numbers}
"""Readers of the tables that a claim may name."""
RULES = ("greater", "comparable", "no_worse", "at_least", "tally")
"""The kinds of rule that the page explains."""
NUMBERS = ("of", "other", "estimate", "sd", "low", "high", "seeds", "confidence", "env_steps", "cells")
"""Ours on one task: the mean of the claim's variant and of what it is compared with, the interval, and its basis."""


class Answer(NamedTuple):
    """A claim at one tier: as it was put, the study that answers and our numbers on each task, and the verdict."""

    asked: Claim | None
    study: str
    ours: tuple[Row, ...]
    verdict: Verdict
    reason: str
    normal: str
    """Whether the baseline of that study is normal on these tasks."""


class Line(NamedTuple):
    """A claim on one task, or a tally on all of its tasks, with its answer at every tier."""

    claim: Claim
    tasks: tuple[str, ...]
    answers: dict[str, Answer]


def load(sources: Sequence[Source], paper: Paper) -> list[Line]:
    """Every claim in the order of the file, one line for each of its tasks, a tally in one line."""
    lines = []
    for claim in paper.claims:
        for tasks in [claim.tasks] if claim.rule.kind == "tally" else [[task] for task in claim.tasks]:
            answers = {tier: answer(sources, paper, claim, tasks, tier) for tier in Tiers.model_fields}
            lines.append(Line(claim, tuple(tasks), answers))
    return lines


def answer(sources: Sequence[Source], paper: Paper, claim: Claim, tasks: Sequence[str], tier: str) -> Answer:
    """What the studies of a tier say.

    Of several that have all numbers, one answers, chosen by its scale and never by its outcome: one that is large
    enough for a verdict, then the one with the most environment steps, then the one with the most seeds.
    """
    asked = paper.asked(claim, tier)
    if isinstance(asked, str):
        return Answer(None, "", (), Verdict.NOT_ASKED, asked, UNKNOWN)
    tasks, scale = asked.tasks if claim.rule.kind == "tally" else tasks, getattr(paper.tiers, tier)
    missing, able = list(tasks), list[tuple[Source, tuple[Row, ...]]]()
    for source in sources:
        if source.is_of(paper.tiers, tier) and asked.units in (None, source.units):
            found = {task: compare(source.results, paper, asked, task, tier) for task in tasks}
            lacking = [task for task, of in found.items() if of is None]
            missing = min(missing, lacking, key=len)
            if not lacking:
                able.append((source, tuple(of for of in found.values() if of is not None)))
    if not able:
        needs = f"needs {' and '.join(asked.variants)} on {', '.join(missing)} (preset {asked.preset})"
        return Answer(asked, "", (), Verdict.NOT_RUN, needs, UNKNOWN)

    def size(of: tuple[Source, tuple[Row, ...]]) -> tuple[bool, int, int]:
        seeds, steps = least(of[1])
        return not too_small(asked, of[1], scale), steps, seeds

    best, ours = max(able, key=size)
    return Answer(asked, best.name, ours, *judge(asked, ours, scale), is_normal(best, paper, tasks))


def compare(results: Results, paper: Paper, claim: Claim, task: str, tier: str) -> Row | None:
    """The claim's numbers on one task; None where the study or its results lack a variant, or the two share no seed."""
    if task not in results.study.tasks or not {*claim.variants} <= {*results.study.variants}:
        return None  # older results may lie there, but are none of this study's
    cells = [cell for variant in claim.variants for cell in results.cells("train", task=task, variant=variant)]
    steps = {cell: results.read(cell, history.read_metrics).env_steps for cell in cells}
    until = min([claim.env_steps, *steps.values()])  # no curve is taken further than the shortest of them
    values: dict[str, dict[int | None, float]] = {variant: {} for variant in claim.variants}
    for cell in cells:
        if (value := measure(results, claim, cell, until=until)) is not None:
            values[cell.variant][cell.seed] = value
    ours = values[claim.of]
    if claim.than is not None:
        theirs = values[claim.than]
    elif (fixed := paper.level(claim, tier, task, evaluation.best_possible(results, task))) is None:
        return None  # ours are of other episodes
    else:
        theirs = dict.fromkeys(ours, fixed)
    level = theirs if claim.rule.value is None else dict.fromkeys(ours, 0.0)  # a value is weighed itself
    found = paired_difference(ours, level, confidence=claim.confidence)
    if found is None:
        return None
    seeds = ours.keys() & theirs.keys()
    means = (estimate([of[seed] for seed in seeds]).mean for of in (ours, theirs))
    used = [cell for cell in cells if cell.seed in seeds]
    named = tuple(cell.of(claim.measure.stage or "train") for cell in used)
    numbers = (*means, *found, claim.confidence, min(steps[cell] for cell in used), named)
    return {"task": task, **dict(zip(NUMBERS, numbers, strict=True))}


def measure(results: Results, claim: Claim, trained: Cell, *, until: int) -> float | None:
    """The claim's number of one trained agent, of a curve up to ``until`` steps; None where it is not there."""
    of = claim.measure
    cell = trained.of(of.stage or "train")
    needed = "curve.csv" if of.curve is not None else of.table or "metrics.json"
    if results.absent(cell, [needed]) or results.damage(cell):
        return None
    if of.curve is not None:
        return learning.MEASURES[of.curve](results.read(cell, history.read_curve), until=until)
    value = _number(results, cell, of, str(of.key))
    less = 0.0 if of.minus is None else _number(results, cell, of, of.minus)
    return None if value is None or less is None else value - less


def _number(results: Results, cell: Cell, of: Measure, key: str) -> float | None:
    """One number of the cell's table or of its metrics."""
    if of.table is not None:
        frame = results.read(cell, TABLES[of.table])
        found = frame.loc[frame.iloc[:, 0] == of.row, key].dropna()
        return float(found.iloc[0]) if len(found) else None
    value: Any = results.read(cell, METRICS[str(of.stage)].read_metrics)
    for part in key.split("/"):
        value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
    return None if value is None else float(value)


def least(ours: Sequence[Row]) -> tuple[int, int]:
    """The fewest seeds and environment steps behind any of the numbers."""
    return min(of["seeds"] for of in ours), min(of["env_steps"] for of in ours)


def too_small(claim: Claim, ours: Sequence[Row], scale: Tier) -> list[str]:
    """What our numbers lack to be judged at a tier."""
    (seeds, steps), share = least(ours), scale.budget if claim.budget is None else claim.budget
    budget = share * claim.env_steps
    short = [f"{seeds} of at least {scale.seeds} seeds"] if seeds < scale.seeds else []
    return short + ([f"{steps:,} of at least {budget:,.0f} environment steps"] if steps < budget else [])


def judge(claim: Claim, ours: Sequence[Row], scale: Tier) -> tuple[Verdict, str]:
    """The verdict on numbers that are all there, with its reason; below the tier's scale it is always undecided."""
    if short := too_small(claim, ours, scale):
        return Verdict.UNDECIDED, " and ".join(short)
    intervals = [(of["low"] or 0.0, of["high"] or 0.0) for of in ours]
    if claim.rule.kind == "tally":
        return tally(claim.rule, intervals)
    return weigh(claim.rule, *intervals[0], other=ours[0]["other"])


def ours_words(claim: Claim, of: Row) -> str:
    """`ccwm − dreamer +12.30 (95% −4.10 to 28.70; 181.0 and 168.7)`."""
    low, high, mean = of["low"], of["high"], format.number(of["of"])
    around = "no interval" if low is None else f"{claim.confidence:.0%} {format.interval(low, high)}"
    against = claim.than or claim.quoted
    if against is None:
        return f"{claim.of} {mean} ({around})"
    both = f"{mean} and {format.number(of['other'])}"
    return f"{claim.of} − {against} {format.signed(of['estimate'])} ({around}; {both})"


def basis(of: Answer) -> str:
    """The scale of our numbers, where they come from, and whether the baseline there is normal."""
    seeds, steps = least(of.ours)
    return f"{format.count(seeds, 'seed')}, {steps:,} steps, {of.study} · baseline normal: {of.normal}"


def summary(lines: Sequence[Line], tier: str) -> str:
    """How many claims have each verdict at a tier."""
    counts = Counter(line.answers[tier].verdict for line in lines)
    plural = {Verdict.AGREES: "agree", Verdict.DISAGREES: "disagree"}
    return ", ".join(f"{n} {plural.get(of, of) if n > 1 else of}" for of in Verdict if (n := counts[of]))


def claims_table(lines: Sequence[Line], tiers: Tiers) -> Table:
    """The claims as they are read, their verdicts at every tier that any of them has side by side."""
    shown = [(name, of) for name, of in reversed([*tiers]) if any(name in line.answers for line in lines)]
    rows = []
    for claim, tasks, answers in lines:
        about = f"{', '.join(tasks)} · {claim.where} · printed: {claim.printed}"
        entries = [answer_entry(answers[name], claim) for name, _ in shown]
        rows.append([Entry(claim.says, claim.says, notes=(about,)), *entries])
    titles = [f"{of.title[0].upper()}{of.title[1:]}" for _, of in shown]
    return Table("", ["Claim", *titles], rows, texts=3, style="claims")


def answer_entry(of: Answer, claim: Claim) -> Entry:
    """A verdict with its reason, its numbers and their scale; cells are linked where they are this study's own.

    What is asked is said where it is not the paper's own question. A tally has too many cells to name: claims.csv has
    them.
    """
    verdict, asked = of.verdict, of.asked
    notes = [of.reason]
    if asked is not None and of.ours:
        said = [f"{row['task']}: " * (len(of.ours) > 1) + ours_words(asked, row) for row in of.ours]
        other = [] if asked.says == claim.says else [f"asked: {asked.says}"]
        notes = [*other, *said, of.reason, basis(of)]
    linked = of.ours[0]["cells"] if of.study == OWN and len(of.ours) == 1 else ()
    return Entry(verdict, verdict, linked, tuple(notes), f"verdict {verdict.split()[0]}")


def records(lines: Sequence[Line]) -> list[Row]:
    """Every number of the ledger unrounded, a row for each claim, tier and task."""
    rows = []
    for claim, tasks, answers in lines:
        for tier, of in answers.items():
            about = {"id": claim.id, "tier": tier, "task": " ".join(tasks), "verdict": of.verdict.value}
            about |= {"reason": of.reason, "study": of.study, "baseline_normal": of.normal}
            about |= {key: getattr(of.asked or claim, key) for key in ("says", "where", "printed")}
            rows += [{**about, **row} for row in of.ours or ({**dict.fromkeys(NUMBERS), "cells": ()},)]
    return rows


def build(report: Report) -> list[Block]:
    """The claims that have run at any tier, those that have not, and how a verdict is given."""
    paper = report.paper
    if paper is None:
        return []
    lines = load(report.sources, paper)
    report.csv("claims", records(lines))
    run, waiting = list[Line](), list[Line]()
    for line in lines:
        (run if any(of.ours for of in line.answers.values()) else waiting).append(line)
    said = [f"{of.title}: {summary(lines, tier)}" for tier, of in reversed([*paper.tiers])]
    about = {"total": format.count(len(lines), "claim"), "said": "; ".join(said), "title": paper.title}
    blocks: list[Block] = [Words(say("claims", "intro", **about))]
    if run:
        blocks.append(claims_table(run, paper.tiers))
    if waiting:
        blocks.append(Details(f"{len(waiting)} not run, and what each needs", [claims_table(waiting, paper.tiers)]))
    scales = [say("claims", "scale", **dict(of), of=_budget(of)) for _, of in paper.tiers]
    rule = [
        *(Words(of, "point") for of in scales),
        Words(say("claims", "rules")),
        *(Words(say("claims", kind), "point") for kind in RULES),
        Words(say("claims", "otherwise")),
    ]
    return [*blocks, Details("How a verdict is given", rule)]


def _budget(tier: Tier) -> str:
    return "the paper’s" if tier.env_steps is None else f"{tier.env_steps:,}"


SECTION = Section("claims", "The paper’s claims", build, {})
