"""One look for all figures, written as SVG and PDF that do not change from run to run."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.style import context
from matplotlib.ticker import EngFormatter, MaxNLocator

from ccwm.report.statistics import Curve

INK = "#2b2f36"  # in an SVG it becomes currentColor, so that text and axes follow the page's light or dark
WIDTH = 4.6  # inches of a figure that shares a row of the page with another, or fills a phone
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
styled = context(Path(__file__).parent / "templates" / "figures.mplstyle")
"""Decorates what draws and saves the figures of a report."""
DASHED = (0, (4, 3))
LINES = ("-", DASHED, (0, (1, 1.5)))
ADAPTIVE = "<style>svg{color:#2b2f36}@media (prefers-color-scheme:dark){svg{color:#d9dee5}}</style>"
"""What an SVG file needs to suit a light and a dark screen; within a page its ink follows the page."""


def variant_colours(variants: list[str], given: Mapping[str, str]) -> dict[str, str]:
    """Every variant's colour: the given one, else the next free one of the Okabe-Ito order."""
    taken = {colour.lower() for colour in given.values()}
    free = [colour for colour in OKABE_ITO if colour not in taken] or list(OKABE_ITO)
    rest = [variant for variant in variants if variant not in given]
    return {**{variant: free[i % len(free)] for i, variant in enumerate(rest)}, **given}


def panel(width: float = WIDTH, height: float = 3.1) -> tuple[Figure, Axes]:
    """A figure of one panel."""
    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def draw_curves(axes: Axes, curves: Mapping[str, Curve], colours: Mapping[str, str], *, ticks: int = 5) -> None:
    """Draw each variant's mean as a line, dots where there are few points, and its band as a shade.

    Variants that share a colour, because there are more of them than colours, differ in their line.
    """
    drawn = Counter[str]()
    for variant, curve in curves.items():
        marker, ls = "o" if len(curve.x) <= 25 else None, LINES[drawn[colours[variant]] % len(LINES)]
        drawn[colours[variant]] += 1
        axes.plot(curve.x, curve.mean, color=colours[variant], lw=1.8, ls=ls, marker=marker, ms=3.5, label=variant)
        if curve.band is not None:
            low, high = curve.mean - curve.band, curve.mean + curve.band
            axes.fill_between(curve.x, low, high, color=colours[variant], alpha=0.18, lw=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))


def env_steps(axes: Axes) -> None:
    """Label an axis of environment steps: 20k."""
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def shared_legend(figure: Figure | SubFigure, *, width: float = WIDTH) -> None:
    """One legend below the axes, with every line that any of them drew, in the columns that fit the width (inches)."""
    drawn: dict[Any, Any] = {}
    for axes in figure.axes:
        lines, labels = axes.get_legend_handles_labels()
        drawn.update(zip(labels, lines, strict=True))
    inches = [0.6 + 0.075 * len(label) for label in drawn]  # the line, then about this much for a letter
    columns = len(drawn) if sum(inches) <= width else max(int(width / max(inches)), 1)
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower left", ncols=columns, fontsize=8.5)


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write name.svg and name.pdf, and return the SVG for use inside a page."""
    svg = to_svg(figure)
    (folder / f"{name}.svg").write_text(adaptive(svg), "utf-8")
    figure.set_layout_engine("none")  # laid out already, and a layout takes longer than a file
    dateless = {"CreationDate": None, "Creator": None, "Producer": None}
    figure.savefig(folder / f"{name}.pdf", format="pdf", metadata=dateless)
    return inline(svg, name)


def to_svg(figure: Figure) -> str:
    """The figure as an SVG document whose ink is currentColor."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return buffer.getvalue().replace(INK, "currentColor")


def adaptive(svg: str) -> str:
    """An SVG document whose ink suits a light and a dark screen by itself."""
    return svg.replace("<defs>", f"{ADAPTIVE}<defs>", 1)


def inline(svg: str, name: str) -> str:
    """An SVG document as an element of an HTML page: no prologue, no namespaces, ids that no other figure has."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r' xmlns(:\w+)?="[^"]*"', "", element).replace("xlink:href", "href")
    prefix = re.sub(r"[^A-Za-z0-9_-]", "-", name)
    element = re.sub(r'\bid="', f'id="{prefix}-', element)
    return re.sub(r'(href="#|url\(#)', rf"\1{prefix}-", element).strip()
