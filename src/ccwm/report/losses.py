"""The section on losses: every logged term of every variant."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccwm.report import figures
from ccwm.report.blocks import Block, Legend, Panels, Picture, Words
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.statistics import Curve, over_seeds
from ccwm.report.words import say
from ccwm.training.history import COUNTERS, read_losses

FILES = ("losses.csv",)
COLUMNS = 4
"""Panels beside each other in the figure of all terms."""


def load(results: Results, task: str) -> dict[str, dict[str, Curve]]:
    """The mean curve of each variant, by term in the order of the files."""
    found = results.load("train", task, read_losses, FILES)
    logged = dict.fromkeys(column for of in found.values() for frame in of.values() for column in frame)
    terms: dict[str, dict[str, Curve]] = {}
    for term in (str(column) for column in logged if column not in COUNTERS):
        curves = {variant: over_seeds(of.values(), "env_steps", term) for variant, of in found.items()}
        terms[term] = {variant: curve for variant, curve in curves.items() if curve is not None}
    return {term: curves for term, curves in terms.items() if curves}


def draw_loss(axes: Axes, term: str, curves: Mapping[str, Curve], colours: Mapping[str, str]) -> None:
    """Draw one term, small."""
    figures.draw_curves(axes, curves, colours, ticks=4)
    for line in axes.lines:
        line.set(linewidth=1.2, markersize=2)
    axes.set_title(term, fontsize=9)
    axes.tick_params(labelsize=8)
    figures.env_steps(axes)


@figures.styled
def losses_figure(task: str, terms: Mapping[str, Mapping[str, Curve]], colours: Mapping[str, str]) -> Figure:
    """All terms of one task in a grid, with one legend."""
    rows = -(-len(terms) // COLUMNS)
    figure = Figure(figsize=(2.5 * COLUMNS, 1.7 * rows + 0.6))
    grid = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for axes, (term, curves) in zip(grid, terms.items(), strict=False):
        draw_loss(axes, term, curves, colours)
    for unused in grid[len(terms) :]:
        unused.remove()
    figure.suptitle(task, x=0.01, ha="left")
    figures.shared_legend(figure, width=2.5 * COLUMNS)
    return figure


@figures.styled
def small_picture(task: str, term: str, curves: Mapping[str, Curve], colours: Mapping[str, str]) -> Picture:
    """One term alone, for the page, without a legend: the page shows one for all."""
    figure, axes = figures.panel(2.4, 1.6)
    draw_loss(axes, term, curves, colours)
    svg = figures.inline(figures.to_svg(figure), f"loss-{task}-{term}")
    return Picture("", Markup(svg), f"{term} on {task}")


def build(report: Report) -> list[Block]:
    """A small panel for each term on the page, and a figure of all in a file."""

    def of_task(task: str) -> list[Block]:
        terms = load(report.results, task)
        if not terms:
            return []
        whole = report.picture(losses_figure(task, terms, report.colours), f"losses-{task}", f"Losses on {task}")
        small = [small_picture(task, term, of, report.colours) for term, of in terms.items()]
        return [Panels([*small], "small", whole)]

    blocks = report.by_task(of_task)
    intro: list[Block] = [Words(say("losses", "intro")), Legend(report.colours)]
    return [*intro, *blocks] if blocks else []


SECTION = Section("losses", "Losses", build, {"train": FILES})
