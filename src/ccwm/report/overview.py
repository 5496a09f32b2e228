"""The head of the report: what was compared, what came out, what it cannot say, and a picture for the README."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from ccwm.report import evaluation, figures, format, learning, prediction
from ccwm.report.results import MEASURED, Results
from ccwm.report.section import Report
from ccwm.report.statistics import Estimate, average
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
    what = (
        f"{format.listing(study.variants)} on {format.listing(study.tasks)}, {format.count(len(study.seeds), 'seed')}"
    )
    trained = [results.read(cell, read_metrics) for cell in results.cells("train")]
    steps, updates = (average(getattr(of, key) for of in trained) for key in ("env_steps", "updates"))
    if steps is None or updates is None:
        return f"{what} each. No training has finished yet."
    budget = f"{format.count(round(steps), 'environment step')} (simulator frames) and "
    budget += format.count(round(updates), "update")
    mixed = ", on average" if len({of.env_steps for of in trained}) > 1 else ""
    return f"{what} each. Each agent was trained for {budget}{mixed}."


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
        said.append(f"Return with its 95% interval: {', '.join(known)}.")
    for row in rows:
        found = evaluation.return_difference(results, task, row.variant)
        if row.variant != results.reference and found is not None:
            said.append(difference_words(row.variant, results.reference, *found))
    if predicted := prediction.summarise(results, task):
        useful, median = (
            format.listing([f"{format.steps(getattr(row.metrics, key))} ({row.variant})" for row in predicted])
            for key in ("useful_steps_of_mean", "useful_steps_median")
        )
        said.append(
            f"The mean error of open-loop prediction stays below a frozen frame’s for {useful} of "
            f"{predicted[0].metrics.horizon:.0f} steps; in the median episode for {median}."
        )
    return " ".join(said) or "Nothing has been evaluated yet."


def difference_words(variant: str, reference: str, difference: Estimate, pairs: str) -> str:
    """The verdict on a difference: clear only where its 95% interval leaves out zero."""
    size = format.signed(difference.mean)
    if difference.low is None or difference.high is None:
        return f"{variant} − {reference} is {size} from a single pair: no interval, so no verdict."
    paired = f"95% interval {format.interval(difference.low, difference.high)}, {difference.n} paired {pairs}"
    if difference.low > 0:
        return f"{variant} is ahead of {reference} by {format.number(difference.mean)} ({paired})."
    if difference.high < 0:
        return f"{variant} is behind {reference} by {format.number(-difference.mean)} ({paired})."
    return f"There is no clear difference between {variant} and {reference}: {size} ({paired})."


def caveats(results: Results) -> list[str]:
    """What the numbers cannot say: few seeds, unfinished stages."""
    said, seeds = [], len(results.study.seeds)
    if seeds == 1:
        said.append("1 seed: no statement about seeds. Intervals cover the episodes of one agent each.")
    elif seeds < 5:
        said.append(f"{seeds} seeds: intervals over seeds are wide and rough.")
    absent = sum(len(results.missing(stage)) for stage in MEASURED)
    expected = sum(len(results.expected(stage)) for stage in MEASURED)
    if absent:
        said.append(f"{absent} of {format.count(expected, 'result')} are missing; each section says which.")
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
