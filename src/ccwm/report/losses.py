"""The section on losses: every logged term of every variant."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccwm.report import figures
from ccwm.report.blocks import Block, Panels, Picture
from ccwm.report.results import Results
from ccwm.report.section import Report, Section, by_task
from ccwm.report.statistics import Curve, curves_of
from ccwm.training.history import COUNTERS, read_losses

FILES = ("losses.csv",)
COLUMNS = 4
"""Panels beside each other in the figure of all terms."""
Curves = Mapping[str, Curve]


def load(results: Results, task: str) -> dict[str, Curves]:
    """The mean curve of each variant, by term in the order of the files."""
    found = results.load("train", task, read_losses, FILES)
    logged = dict.fromkeys(str(column) for of in found.values() for frame in of.values() for column in frame)
    terms = {term: curves_of(found, "env_steps", term) for term in logged if term not in COUNTERS}
    return {term: curves for term, curves in terms.items() if curves}


def draw_loss(axes: Axes, term: str, curves: Curves, colours: Mapping[str, str]) -> None:
    """Draw one term, small."""
    figures.draw_curves(axes, curves, colours, ticks=4)
    for line in axes.lines:
        line.set(linewidth=1.2, markersize=2)
    axes.set_title(term, fontsize=9)
    axes.tick_params(labelsize=8)
    figures.env_steps(axes)


def losses_figure(task: str, terms: Mapping[str, Curves], colours: Mapping[str, str]) -> Figure:
    """All terms of one task in a grid, with one legend."""
    rows = -(-len(terms) // COLUMNS)
    figure = Figure(figsize=(2.5 * COLUMNS, 1.7 * rows + 0.6))
    for i, (term, curves) in enumerate(terms.items()):
        draw_loss(figure.add_subplot(rows, COLUMNS, i + 1), term, curves, colours)
    figure.suptitle(task, x=0.01, ha="left")
    figures.shared_legend(figure, width=2.5 * COLUMNS)
    return figure


def small_picture(task: str, term: str, curves: Curves, colours: Mapping[str, str]) -> Picture:
    """One term alone, for the page, without a legend: the page shows one for all."""
    figure, axes = figures.panel(2.4, 1.6)
    draw_loss(axes, term, curves, colours)
    return Picture("", Markup(figures.inline(figures.to_svg(figure), f"loss-{task}-{term}")), f"{term} on {task}")


def of_task(report: Report, task: str) -> list[Block]:
    """A small panel for each term on the page, and a figure of all in a file."""
    terms = load(report.results, task)
    if not terms:
        return []
    whole = report.picture(losses_figure(task, terms, report.colours), f"losses-{task}", f"Losses on {task}")
    return [Panels([small_picture(task, term, of, report.colours) for term, of in terms.items()], "small", whole)]


SECTION = Section("losses", "Losses", by_task(of_task, intro="losses", legend=True), {"train": FILES})
