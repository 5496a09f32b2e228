"""Line figures: one look for all, written as SVG and PDF that do not change from run to run."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from ccwm.report.curves import Curve

INK = "#2b2f36"  # in an SVG it becomes currentColor, so that text and axes follow the page's light or dark
WIDTH = 4.6  # inches of a figure that shares a row of the page with another, or fills a phone
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "ccwm",  # ids would be random without it
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.constrained_layout.use": True,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"), INK
    ),
}
DASHED = (0, (4, 3))
QUOTED_DOTS = ((0, (1, 2)), (0, (1, 4)))
ADAPTIVE = "<style>svg{color:#2b2f36}@media (prefers-color-scheme:dark){svg{color:#d9dee5}}</style>"


def variant_colours(variants: list[str], given: Mapping[str, str]) -> dict[str, str]:
    """Every variant's colour: the given one, else the next free one of the Okabe-Ito order."""
    taken = {colour.lower() for colour in given.values()}
    free = [colour for colour in OKABE_ITO if colour not in taken] or list(OKABE_ITO)
    rest = [variant for variant in variants if variant not in given]
    return {**{variant: free[i % len(free)] for i, variant in enumerate(rest)}, **given}


def draw_curves(axes: Axes, curves: Mapping[str, Curve], colours: Mapping[str, str]) -> None:
    """Draw each variant's mean as a line, dots where there are few points, and its band as a shade."""
    for variant, curve in curves.items():
        marker = "o" if len(curve.x) <= 25 else None
        axes.plot(curve.x, curve.mean, color=colours[variant], lw=1.8, marker=marker, ms=3.5, label=variant)
        if curve.band is not None:
            low, high = curve.mean - curve.band, curve.mean + curve.band
            axes.fill_between(curve.x, low, high, color=colours[variant], alpha=0.18, lw=0)
    _ticks(axes, x=5, y=5)


def draw_learning(
    axes: Axes,
    task: str,
    curves: Mapping[str, Curve],
    colours: Mapping[str, str],
    *,
    random: float | None,
    quoted: Mapping[str, float] | None = None,
) -> None:
    """Draw greedy returns against environment steps, the random policy's level dashed, quoted returns dotted."""
    draw_curves(axes, curves, colours)
    if random is not None:
        axes.axhline(random, color=INK, lw=1.2, ls=DASHED, label="random policy", zorder=1)
    for (method, level), dots in zip((quoted or {}).items(), QUOTED_DOTS, strict=False):
        axes.axhline(level, color=INK, lw=1.0, ls=dots, alpha=0.7, label=f"{method} (quoted)", zorder=1)
    axes.set(title=task, xlabel="environment steps", ylabel="return")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


@mpl.rc_context(STYLE)
def learning_figure(
    task: str,
    curves: Mapping[str, Curve],
    colours: Mapping[str, str],
    *,
    random: float | None,
    quoted: Mapping[str, float],
) -> Figure:
    """Greedy returns of every variant on one task."""
    figure, axes = _panel(WIDTH, 3.1)
    draw_learning(axes, task, curves, colours, random=random, quoted=quoted)
    shared_legend(figure, width=WIDTH)
    return figure


@mpl.rc_context(STYLE)
def step_figure(
    task: str,
    curves: Mapping[str, Curve],
    baselines: Mapping[str, Curve],
    colours: Mapping[str, str],
    *,
    label: str,
    floor: float | None,
) -> Figure:
    """A measure of open-loop prediction against the step, with those of the baselines dashed and dotted."""
    figure, axes = _panel(WIDTH, 3.1)
    draw_curves(axes, curves, colours)
    for (name, curve), line in zip(baselines.items(), (DASHED, "dotted"), strict=False):
        axes.plot(curve.x, curve.mean, color=INK, lw=1.2, ls=line, label=name, zorder=1)
    axes.set(title=task, xlabel="predicted step", ylabel=label)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=floor)
    shared_legend(figure, width=WIDTH)
    return figure


@mpl.rc_context(STYLE)
def horizon_figure(
    task: str, shares: Mapping[str, Mapping[str, NDArray[np.float64]]], colours: Mapping[str, str]
) -> Figure:
    """Share of episodes whose prediction is still better than a baseline, step by step, a panel for each baseline."""
    figure = Figure(figsize=(WIDTH, 3.1))
    panels = figure.subplots(1, len(shares), sharey=True, squeeze=False).flat
    for axes, (baseline, of) in zip(panels, shares.items(), strict=True):
        for variant, share in of.items():
            axes.step(np.arange(len(share)), share, color=colours[variant], lw=1.8, where="post", label=variant)
        axes.set_title(f"than {baseline}", fontsize=9)
        axes.set(xlabel="predicted step", ylim=(0, 1.03))
        axes.set_xlim(left=0)
        _ticks(axes, x=4, y=5)
    figure.axes[0].set_ylabel("episodes still better")
    figure.suptitle(task, x=0.01, ha="left", fontsize=10)
    shared_legend(figure, width=WIDTH)
    return figure


@mpl.rc_context(STYLE)
def loss_figure(term: str, curves: Mapping[str, Curve], colours: Mapping[str, str]) -> Figure:
    """One loss term of every variant, small and without a legend: the page shows one for all."""
    figure, axes = _panel(2.4, 1.6)
    _draw_loss(axes, term, curves, colours)
    return figure


@mpl.rc_context(STYLE)
def losses_figure(
    task: str, terms: Mapping[str, Mapping[str, Curve]], colours: Mapping[str, str], *, columns: int = 4
) -> Figure:
    """All loss terms of one task in a grid, with one legend."""
    rows = -(-len(terms) // columns)
    figure = Figure(figsize=(2.5 * columns, 1.7 * rows + 0.6))
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (term, curves) in zip(grid, terms.items(), strict=False):
        _draw_loss(axes, term, curves, colours)
    for unused in grid[len(terms) :]:
        unused.remove()
    figure.suptitle(task, x=0.01, ha="left")
    shared_legend(figure, width=2.5 * columns)
    return figure


def shared_legend(figure: Figure | SubFigure, *, width: float) -> None:
    """One legend below the axes, with every line that any of them drew, in the columns that fit the width (inches)."""
    drawn: dict[Any, Any] = {}
    for axes in figure.axes:
        lines, labels = axes.get_legend_handles_labels()
        drawn.update(zip(labels, lines, strict=True))
    inches = [0.6 + 0.075 * len(label) for label in drawn]  # the line, then about this much for a letter
    columns = len(drawn) if sum(inches) <= width else max(int(width / max(inches)), 1)
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower left", ncols=columns, fontsize=8.5)


@mpl.rc_context(STYLE)
def save(figure: Figure, folder: Path, name: str) -> str:
    """Write name.svg and name.pdf, and return the SVG for use inside a page."""
    svg = to_svg(figure)
    (folder / f"{name}.svg").write_text(adaptive(svg), "utf-8")
    dateless = {"CreationDate": None, "Creator": None, "Producer": None}
    figure.savefig(folder / f"{name}.pdf", format="pdf", metadata=dateless)
    return inline(svg, name)


@mpl.rc_context(STYLE)
def to_svg(figure: Figure) -> str:
    """The figure as an SVG document whose ink is currentColor."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return buffer.getvalue().replace(INK, "currentColor")


def adaptive(svg: str) -> str:
    """An SVG document as a file of its own, whose ink suits a light and a dark screen."""
    return svg.replace("<defs>", f"{ADAPTIVE}<defs>", 1)


def inline(svg: str, name: str) -> str:
    """An SVG document as an element of an HTML page: no prologue, no namespaces, ids that no other figure has."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r' xmlns(:\w+)?="[^"]*"', "", element).replace("xlink:href", "href")
    prefix = re.sub(r"[^A-Za-z0-9_-]", "-", name)
    element = re.sub(r'\bid="', f'id="{prefix}-', element)
    return re.sub(r'(href="#|url\(#)', rf"\1{prefix}-", element).strip()


def _draw_loss(axes: Axes, term: str, curves: Mapping[str, Curve], colours: Mapping[str, str]) -> None:
    draw_curves(axes, curves, colours)
    for line in axes.lines:
        line.set(linewidth=1.2, markersize=2)
    axes.set_title(term, fontsize=9)
    axes.tick_params(labelsize=8)
    _ticks(axes, x=3, y=4)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _ticks(axes: Axes, *, x: int, y: int) -> None:
    for axis, most in ((axes.xaxis, x), (axes.yaxis, y)):
        axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))


def _panel(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()
