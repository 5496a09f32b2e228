"""The section on the baselines: are our Dreamer and SAC as good as published ones, before anything is said of them?"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ccwm.report import evaluation, format, learning
from ccwm.report.blocks import Block, Table
from ccwm.report.claims import Normal, Paper, Rule
from ccwm.report.section import Report, Section
from ccwm.report.sources import Source
from ccwm.report.statistics import estimate
from ccwm.report.table import Column, Row, table
from ccwm.report.verdict import Verdict, weigh
from ccwm.report.words import say
from ccwm.training.history import read_curve

YES, NO, UNKNOWN = "yes", "no", "unknown"
SAID = {Verdict.AGREES: YES, Verdict.DISAGREES: NO}
COLUMNS = (
    Column("Study", "study"),
    Column("Task", "task"),
    Column("Baseline", "variant"),
    Column("Normal", "normal"),
    Column("Ours (95% interval)", ("mean", "low", "high"), format.around),
    Column("Seeds", "n"),
    Column("Steps", "env_steps"),
    Column("Published as", "method"),
    Column("Published", "published"),
    Column("at steps", "published_steps"),
)


def compare(source: Source, paper: Paper, rule: Normal, task: str) -> Row | None:
    """Our baseline on a task beside the published one at the nearest steps; None where it has no curve here.

    Both are taken at the published steps where they are near enough: ours is the mean of the last tenth up to them.
    """
    curves = source.results.load("train", task, read_curve, learning.FILES).get(rule.variant, {})
    ends = {cell: float(frame["env_steps"].max()) for cell, frame in curves.items() if len(frame)}
    if not ends:
        return None
    reached, near = min(ends.values()), 1 + rule.nearness
    best = evaluation.best_possible(source.results, task)
    points = paper.published_on(task, source.observation, best).get(rule.method, {})
    at = max((steps for steps in points if steps <= reached * near), default=None)
    until = math.inf if at is None else at * near
    ours = estimate([learning.curve_end(curves[cell], until=until) or 0.0 for cell in ends])
    shown = min(points, default=None) if at is None else at
    row = {
        "study": source.name,
        "task": task,
        "variant": rule.variant,
        "normal": UNKNOWN,
        "cells": tuple(ends),
        **ours._asdict(),
    }
    row |= {"env_steps": int(min(until, reached)), "method": rule.method}
    row |= {"published": None if shown is None else points[shown], "published_steps": shown}
    if at is not None and ours.low is not None and ours.high is not None and ours.n >= paper.tiers.states.seeds:
        level = Rule(kind="at_least", value=points[at], margin=rule.margin)
        row["normal"] = SAID.get(weigh(level, ours.low, ours.high, other=points[at])[0], UNKNOWN)
    return row


def is_normal(source: Source, paper: Paper, tasks: Iterable[str]) -> str:
    """`no` where a baseline of the study falls short on any of the tasks, `yes` where none does and all are known."""
    rules = [rule for rule in paper.normal if rule.variant in source.results.study.variants]
    rows = [compare(source, paper, rule, task) for task in tasks for rule in rules]
    found = {UNKNOWN if row is None else str(row["normal"]) for row in rows}
    return NO if NO in found else YES if found == {YES} else UNKNOWN


def compare_all(sources: Iterable[Source], paper: Paper) -> list[Row]:
    """A row for each study and task with a baseline."""
    tasks = [(source, task) for source in sources for task in source.results.study.tasks]
    found = [compare(source, paper, rule, task) for source, task in tasks for rule in paper.normal]
    return [row for row in found if row is not None]


def baseline_table(rows: list[Row], paper: Paper) -> Table:
    """Our baselines beside the published ones."""
    lines = [{**row, "cells": ()} for row in rows]  # names of cells repeat from study to study
    margins = format.listing(list(dict.fromkeys(f"{rule.margin:.0%}" for rule in paper.normal)))
    return table(say("baseline", "table", margins=margins), lines, COLUMNS, texts=4)


def build(report: Report) -> list[Block]:
    """A table of all studies and tasks with a baseline."""
    paper = report.paper
    if paper is None:
        return []
    rows = compare_all(report.sources, paper)
    report.csv("baseline", rows)
    return [baseline_table(rows, paper)] if rows else []


SECTION = Section("baseline", "Are our baselines normal?", build, {})
