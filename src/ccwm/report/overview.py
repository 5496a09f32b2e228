"""The head of the report: what was compared, what came out, what it cannot say, and a picture for the README."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from ccwm.report import evaluation, figures, format, learning, prediction
from ccwm.report.blocks import Picture
from ccwm.report.differences import difference_figure
from ccwm.report.findings import findings, largest
from ccwm.report.results import MEASURED, Results
from ccwm.report.rollouts import load_shown
from ccwm.report.section import Report
from ccwm.report.statistics import Estimate
from ccwm.report.words import say
from ccwm.studies.components import draw_components
from ccwm.studies.images import write_figure
from ccwm.studies.strips import WIDTH, Strip, draw_strip
from ccwm.training.history import read_metrics


def head(report: Report) -> dict[str, Any]:
    """What stands above the sections: what was found, then the study in a few sentences."""
    results, found = report.results, findings(report.sources, report.paper)
    outcomes = {task: outcome(results, task) for task in results.study.tasks}
    about = {"comparison": comparison(results), "outcomes": outcomes, "caveats": caveats(results)}
    return {"findings": found, "figure": differences(report), **about}


def differences(report: Report) -> Picture | None:
    """The figure that carries the first sentences: the differences in the study that they are about."""
    found = largest(report.sources)
    figure = difference_figure(found[0].results, report.colours) if found is not None else None
    if found is None or figure is None:
        return None
    note = say("study", "differences", reference=found[0].results.reference)
    return report.picture(figure, "differences", f"Differences in {found[0].name}", note=note)


def comparison(results: Results) -> str:
    """What was compared, on what, and with what budget."""
    study = results.study
    trained = [results.read(cell, read_metrics) for cell in results.cells("train")]
    budget = say("head", "untrained")
    if trained:
        steps = format.count(round(fmean(of.env_steps for of in trained)), "environment step")
        updates = format.count(round(fmean(of.updates for of in trained)), "update")
        mixed = ", on average" if len({of.env_steps for of in trained}) > 1 else ""
        budget = say("head", "budget", steps=steps, updates=updates, mixed=mixed)
    variants, tasks, seeds = format.listing(study.variants), format.listing(study.tasks), len(study.seeds)
    return say("head", "compared", variants=variants, tasks=tasks, seeds=format.count(seeds, "seed"), budget=budget)


def outcome(results: Results, task: str) -> str:
    """The main outcome on a task in a few sentences, each with its uncertainty."""
    rows, said = evaluation.summarise(results, task), []
    if rows:
        known = [f"{row['variant']} {format.around(row['mean'], row['low'], row['high'])}" for row in rows]
        if (random := evaluation.random_level(results, task)) is not None:
            known.append(f"random policy {format.number(random)}")
        said.append(say("head", "returns", returns=", ".join(known)))
    for row in rows:
        found = evaluation.return_difference(results, task, row["variant"])
        if row["variant"] != results.reference and found is not None:
            said.append(difference_words(row["variant"], results.reference, *found))
    if predicted := prediction.summarise(results, task):
        useful, median = (
            format.listing([f"{format.steps(row[key])} ({row['variant']})" for row in predicted])
            for key in ("useful_steps_of_mean", "useful_steps_median")
        )
        said.append(say("head", "prediction", useful=useful, horizon=predicted[0]["horizon"], median=median))
    return " ".join(said) or say("head", "nothing")


def difference_words(variant: str, reference: str, difference: Estimate, pairs: str) -> str:
    """The verdict on a difference: clear only where its 95% interval over seeds leaves out zero."""
    about = {"variant": variant, "reference": reference, "size": format.signed(difference.mean)}
    low, high = difference.low, difference.high
    if low is None or high is None:
        return say("head", "pair", **about)
    about["paired"] = f"95% interval {format.interval(low, high)}, {difference.n} paired {pairs}"
    if pairs == "episodes":  # of one agent each: they say nothing about other seeds
        return say("head", "agents", **about)
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


def write_overview(report: Report) -> None:
    """Learning curves of up to three tasks over one predicted episode, as ``figures/overview.png``."""
    results, tasks = report.results, report.results.study.tasks
    curves = {task: of for task in tasks if (of := learning.load_curves(results, task))}
    shown = list(curves.items())[:3]
    episodes = [found[1][0] for task in tasks if (found := load_shown(results, task)) is not None]
    predicted = episodes[0] if episodes else None
    heights = [*([3.2] if shown else []), *([predicted.height] if predicted is not None else [])]
    figure = Figure(figsize=(WIDTH, sum(heights) or 1.2))
    if not heights:
        figure.text(0.5, 0.5, "no results yet", ha="center", va="center")
    else:
        rows = iter(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False).flat)
        if shown:
            part = next(rows)
            for axes, (task, of) in zip(part.subplots(1, len(shown), squeeze=False).flat, shown, strict=True):
                learning.draw_learning(axes, results, task, of, report.colours)
            figures.shared_legend(part, width=WIDTH)
        if isinstance(predicted, Strip):
            draw_strip(next(rows).subplots(), predicted)
        elif predicted is not None:
            draw_components(next(rows), predicted, report.colours)
    write_figure(report.folder / "figures" / "overview.png", figure)
