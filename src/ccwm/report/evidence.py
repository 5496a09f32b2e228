"""The section on the studies in ``evidence/``: each with its scale, its learning curves and its numbers over tasks."""

from __future__ import annotations

from ccwm.report import evaluation, figures, format, learning
from ccwm.report.blocks import Block, Heading, Panels, Words
from ccwm.report.differences import difference_figure
from ccwm.report.findings import largest
from ccwm.report.results import MEASURED
from ccwm.report.section import Report, Section, damaged
from ccwm.report.sources import OWN, Source
from ccwm.report.words import say
from ccwm.training.history import read_metrics


def scale(source: Source) -> str:
    """What was compared, and how much of it is there."""
    results, study = source.results, source.results.study
    cells = results.cells("train")
    steps = sorted({results.read(cell, read_metrics).env_steps for cell in cells})
    about = {"variants": format.listing(study.variants), "tasks": format.listing(study.tasks)}
    about |= {"seeds": format.count(len(study.seeds), "seed"), "inputs": format.inputs(source.observation)}
    about |= {"steps": " to ".join(dict.fromkeys(f"{of:,}" for of in (steps[0], steps[-1]))) if steps else "no"}
    return say("evidence", "study", **about, done=len(cells), expected=len(results.expected("train")))


def of_study(report: Report, source: Source) -> list[Block]:
    """The scale, differences, a figure for each task with a curve, and all tasks together where they have scores."""
    results, pictures = source.results, []
    answer = largest(report.sources)
    drawn = None if answer and answer[0] is source else difference_figure(results, report.colours)
    if drawn is not None:  # the head of the page has that of the largest study
        pictures.append(report.picture(drawn, f"{source.name}-differences", f"Differences in {source.name}"))
    for task in results.study.tasks:
        if curves := learning.load_curves(results, task):
            figure, axes = figures.panel()
            learning.draw_learning(axes, results, task, curves, report.colours)
            last = max(curve.x[-1] for curve in curves.values())
            learning.draw_published(axes, report.paper, source, task, until=last)
            figures.shared_legend(figure)
            label = f"Learning curves on {task} in {source.name}"
            pictures.append(report.picture(figure, f"{source.name}-learning-{task}", label))
    blocks: list[Block] = [Heading(source.name), Words(scale(source))]
    blocks += [block for stage in MEASURED for block in damaged(results, stage)]
    blocks += [Panels(pictures)] if pictures else []
    rows = evaluation.aggregate(results)
    report.csv("evidence", [{"study": source.name, **row} for row in rows])
    if rows:
        unlinked = [{**row, "cells": ()} for row in rows]  # the page of runs has this study's own
        blocks += evaluation.over_tasks(report, results, unlinked, f"{source.name}-profile")
    return blocks


def build(report: Report) -> list[Block]:
    """Every study but the project's own, those with a training that has finished or is damaged."""
    others = [source for source in report.sources if source.name != OWN]
    kept = [each for each in others if each.results.cells("train") or each.results.damaged("train")]
    if not kept:
        return []
    return [Words(say("evidence", "intro")), *(block for source in kept for block in of_study(report, source))]


SECTION = Section("evidence", "Evidence", build, {})
