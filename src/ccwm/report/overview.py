"""The head of the report: what was compared, what came out, what it cannot say, and a picture for the README."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from ccwm.report import evaluation, figures, format, learning, prediction
from ccwm.report.results import MEASURED, Results
from ccwm.report.section import Report
from ccwm.report.statistics import Estimate, average
from ccwm.report.words import say
from ccwm.studies.images import write_figure
from ccwm.studies.strips import WIDTH, draw_strip, strip_height
from ccwm.training.history import read_metrics


@dataclass(frozen=True)
class Head:
    """What stands above the sections."""

    comparison: str
    outcomes: dict[str, str]
    caveats: list[str]


def head(results: Results) -> Head:
    """The study in a few sentences."""
    return Head(comparison(results), {task: outcome(results, task) for task in results.study.tasks}, caveats(results))


def comparison(results: Results) -> str:
    """What was compared, on what, and with what budget."""
    study = results.study
    trained = [results.read(cell, read_metrics) for cell in results.cells("train")]
    steps, updates = (average(getattr(of, key) for of in trained) for key in ("env_steps", "updates"))
    budget = say("head", "untrained")
    if steps is not None and updates is not None:
        spent = {
            "steps": format.count(round(steps), "environment step"),
            "updates": format.count(round(updates), "update"),
            "mixed": ", on average" if len({of.env_steps for of in trained}) > 1 else "",
        }
        budget = say("head", "budget", **spent)
    variants, tasks, seeds = format.listing(study.variants), format.listing(study.tasks), len(study.seeds)
    return say("head", "compared", variants=variants, tasks=tasks, seeds=format.count(seeds, "seed"), budget=budget)


def outcome(results: Results, task: str) -> str:
    """The main outcome on a task in a few sentences, each with its uncertainty."""
    rows = evaluation.summarise(results, task)
    said = []
    if rows:
        known = [
            f"{row.variant} {format.number(row.returns.mean)}"
            + ("" if row.returns.low is None else f" ({format.interval(row.returns.low, row.returns.high)})")
            for row in rows
        ]
        if (random := evaluation.random_level(results, task)) is not None:
            known.append(f"random policy {format.number(random)}")
        said.append(say("head", "returns", returns=", ".join(known)))
    for row in rows:
        found = evaluation.return_difference(results, task, row.variant)
        if row.variant != results.reference and found is not None:
            said.append(difference_words(row.variant, results.reference, *found))
    if predicted := prediction.summarise(results, task):
        useful, median = (
            format.listing([f"{format.steps(getattr(row.metrics, key))} ({row.variant})" for row in predicted])
            for key in ("useful_steps_of_mean", "useful_steps_median")
        )
        horizon = predicted[0].metrics.horizon
        said.append(say("head", "prediction", useful=useful, horizon=horizon, median=median))
    return " ".join(said) or say("head", "nothing")


def difference_words(variant: str, reference: str, difference: Estimate, pairs: str) -> str:
    """The verdict on a difference: clear only where its 95% interval leaves out zero."""
    about = {"variant": variant, "reference": reference, "size": format.signed(difference.mean)}
    low, high = difference.low, difference.high
    if low is None or high is None:
        return say("head", "pair", **about)
    about["paired"] = f"95% interval {format.interval(low, high)}, {difference.n} paired {pairs}"
    if low <= 0 <= high:
        return say("head", "level", **about)
    return say("head", "ahead" if low > 0 else "behind", **{**about, "size": format.number(abs(difference.mean))})


def caveats(results: Results) -> list[str]:
    """What the numbers cannot say: few seeds, unfinished stages."""
    seeds, said = len(results.study.seeds), []
    if seeds < 5:
        said.append(say("head", "one_seed" if seeds == 1 else "few_seeds", n=seeds))
    absent, expected = (sum(len(of(stage)) for stage in MEASURED) for of in (results.missing, results.expected))
    if absent:
        said.append(say("head", "missing", absent=absent, expected=format.count(expected, "result")))
    return said


@figures.styled
def write_overview(report: Report) -> None:
    """Learning curves of up to three tasks over one prediction strip, as ``figures/overview.png``."""
    results, tasks = report.results, report.results.study.tasks
    curves = {task: found for task in tasks if (found := learning.load_curves(results, task))}
    shown = list(curves.items())[:3]
    strips = [strips for task in tasks if (strips := prediction.load_strips(results, task)) is not None]
    strip = strips[0][1][0] if strips else None
    heights = [*([3.2] if shown else []), *([strip_height(strip)] if strip is not None else [])]
    figure = Figure(figsize=(WIDTH, sum(heights) or 1.2))
    if not heights:
        figure.text(0.5, 0.5, "no results yet", ha="center", va="center")
    else:
        rows = iter(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False).flat)
        if shown:
            part = next(rows)
            for axes, (task, of) in zip(part.subplots(1, len(shown), squeeze=False).flat, shown, strict=True):
                random = evaluation.random_level(results, task)
                learning.draw_learning(axes, task, of, report.colours, random=random)
            figures.shared_legend(part, width=WIDTH)
        if strip is not None:
            draw_strip(next(rows).subplots(), strip)
    write_figure(report.folder / "figures" / "overview.png", figure)
