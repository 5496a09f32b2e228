"""The figure that answers the question: by how much each variant's learning curve is higher than the reference's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ccwm.report import figures, format
from ccwm.report.findings import ENOUGH, Gap, gap
from ccwm.report.results import Results
from ccwm.report.statistics import Estimate

OVERALL = "all tasks"
ROW = 0.2
"""Inches of a row."""
BEYOND = 1.3
"""How far the axis reaches beyond the outermost mean; an interval that is longer is cut off there."""


class Line(NamedTuple):
    """A row of the figure; the first row of a variant is its name and has no estimate."""

    label: str
    variant: str
    estimate: Estimate | None = None


def lines(gaps: Mapping[str, Gap]) -> list[Line]:
    """For each variant its name, its tasks, and all of them together where there are several."""
    found = []
    for variant, of in gaps.items():
        found.append(Line(variant, variant))
        found += [Line(f"{task}, {format.count(each.n, 'seed')}", variant, each) for task, each in of.tasks.items()]
        if len(of.tasks) > 1:
            found.append(Line(OVERALL, variant, of.overall))
    return found


def difference_figure(results: Results, colours: Mapping[str, str], *, width: float = figures.WIDTH) -> Figure | None:
    """Differences in height from the reference, paired by seed, with 95% intervals; None where nothing can be compared.

    Tasks of too few seeds are left out where another has enough. A single pair has no interval and is drawn hollow.
    """
    others = [variant for variant in results.study.variants if variant != results.reference]
    found = {variant: gap(results, variant, seeds=ENOUGH) or gap(results, variant) for variant in others}
    rows = lines({variant: of for variant, of in found.items() if of is not None})
    if not rows:
        return None
    named = figures.variant_colours(results.study.variants, colours)
    figure = Figure(figsize=(width, 0.8 + ROW * len(rows)))
    axes = figure.add_subplot()
    axes.axvline(0, lw=1.2, ls=figures.DASHED, color=figures.INK, zorder=1)
    for place, (label, variant, of) in enumerate(rows):
        if of is None:
            continue
        whole = label == OVERALL
        if of.low is not None and of.high is not None:
            axes.plot([of.low, of.high], [place, place], color=named[variant], lw=2.6 if whole else 1.4)
        filled = named[variant] if of.low is not None else "none"
        axes.plot(of.mean, place, marker="D" if whole else "o", ms=5, mfc=filled, mec=named[variant], ls="")
    reach = BEYOND * max(_reach(row.estimate) for row in rows if row.estimate is not None)
    axes.set(xlim=(-reach, reach), ylim=(len(rows) - 0.4, -0.6), xlabel=f"height of the curve − {results.reference}’s")
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if row.estimate is None or row.label == OVERALL else "normal")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    return figure


def _reach(of: Estimate) -> float:
    """As far as an interval reaches, but no more than thrice as far as its mean, so that one does not hide the rest."""
    ends = [abs(end) for end in (of.low, of.high) if end is not None]
    return max(abs(of.mean), min(max(ends, default=0.0), 3 * abs(of.mean)))
