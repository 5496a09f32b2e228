"""A search as figures: history, slices, contour, importance and parallel coordinates."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.tri import Triangulation

from ccwm.report import figures
from ccwm.report.format import NONE
from ccwm.studies.search import Search

WHOLE, PRUNED, WINNER = figures.OKABE_ITO[0], "#8a8f98", figures.OKABE_ITO[1]
MAP = "viridis"
SYMBOLS = {
    "truncation.threshold": "η",
    "truncation.window": "S",
    "truncation.lookback": "τ",
    "truncation.start": "ξ",
    "retrace.weight": "λ",
}
"""The paper's letters."""


def label(key: str) -> str:
    """A setting as an axis names it: the paper's letter and its field, or its key."""
    return f"{SYMBOLS[key]} ({key.partition('.')[2]})" if key in SYMBOLS else key


def setting(value: Any) -> str:
    """A value as text: four digits of a number, a dash where it has none."""
    if isinstance(value, float):
        return NONE if math.isnan(value) else f"{value:.4g}"
    return str(value)


def search_figures(search: Search) -> dict[str, Figure]:
    """History, slice, contour, importance and parallel coordinates; what the trials are too few for is left out."""
    drawn = {"history": history_figure(search), "slice": slice_figure(search)}
    if len(search.numeric) >= 2 and len(search.whole) >= 3:
        drawn["contour"] = contour_figure(search, *search.numeric[:2])
    if search.summary["importance"]:
        drawn["importance"] = importance_figure(search)
    if len(search.whole):
        drawn["parallel"] = parallel_figure(search)
    return drawn


@figures.styled
def history_figure(search: Search) -> Figure:
    """Every trial's value in the order of their numbers, and the best so far."""
    figure, axes = figures.panel()
    whole, pruned = search.whole, search.pruned
    axes.step(whole["trial"], whole["value"].cummax(), where="post", color=figures.INK, lw=1.2, label="best so far")
    _points(axes, search, "trial")
    default = whole[whole["anchor"].str.contains("default")]
    if len(default):
        level = float(default["value"].iloc[0])
        axes.axhline(level, color=figures.INK, lw=1, ls=figures.DASHED, label="default settings", zorder=1)
    axes.set(title="History", xlabel="trial", ylabel=search.summary["measure"])
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if not len(whole) and not len(pruned):
        axes.set_xlim(0, 1)
    figures.shared_legend(figure)
    return figure


@figures.styled
def slice_figure(search: Search) -> Figure:
    """Value against each setting on its own."""
    keys = search.keys
    figure = Figure(figsize=(2.4 * len(keys), 2.9))
    panels = np.atleast_1d(figure.subplots(1, len(keys), sharey=True))
    for axes, key in zip(panels, keys, strict=True):
        _points(axes, search, key)
        axes.set_xlabel(label(key))
        if search.is_log(key):
            _log(axes.xaxis)
    panels[0].set_ylabel(search.summary["measure"])
    figure.suptitle("Slices", x=0.01, ha="left", fontsize=10)
    figures.shared_legend(figure, width=2.4 * len(keys))
    return figure


@figures.styled
def contour_figure(search: Search, x: str, y: str) -> Figure:
    """Value over two settings, interpolated between whole trials; the dots are where something was measured."""
    figure, axes = figures.panel(height=3.4)
    means = pd.DataFrame(search.whole.groupby([x, y], as_index=False)["value"].mean())
    at_x, at_y = _places(search, means, x), _places(search, means, y)
    value = means["value"].to_numpy(np.float64)
    triangles = _triangles(at_x, at_y)
    shade = None
    if triangles is not None and np.ptp(value) > 0:
        shade = axes.tricontourf(Triangulation(at_x, at_y, triangles.triangles), value, levels=12, cmap=MAP, alpha=0.75)
    dots = axes.scatter(
        at_x, at_y, c=value, cmap=MAP, edgecolor=figures.INK, lw=0.8, s=34, label="whole trial", zorder=3
    )
    looks: list[tuple[pd.DataFrame, dict[str, Any]]] = [
        (search.pruned, {"marker": "x", "color": PRUNED, "s": 24, "lw": 1.2, "label": "pruned", "zorder": 2}),
        (_won(search), {"marker": "*", "color": WINNER, "s": 110, "label": "winner", "zorder": 4}),
    ]
    for rows, look in looks:
        axes.scatter(_places(search, rows, x), _places(search, rows, y), **look)
    figure.colorbar(shade or dots, ax=axes, label=search.summary["measure"])
    axes.set(title="Contour", xlabel=label(x), ylabel=label(y))
    axes.grid(False)
    axes.use_sticky_edges = False
    axes.margins(0.07)
    for axis, key in ((axes.xaxis, x), (axes.yaxis, y)):
        if search.is_log(key):  # drawn over logarithms, between which the contours are straight
            axis.set_major_formatter(FuncFormatter(lambda at, _: f"{10**at:.2g}"))
            axis.set_major_locator(MaxNLocator(5))
    figures.shared_legend(figure)
    return figure


@figures.styled
def importance_figure(search: Search) -> Figure:
    """The share of the measure's variance that each setting explains."""
    shares = dict(sorted(search.summary["importance"].items(), key=lambda entry: entry[1]))
    figure, axes = figures.panel(height=0.9 + 0.42 * len(shares))
    names = [" / ".join(label(part) for part in name.split(" / ")) for name in shares]
    bars = axes.barh(names, list(shares.values()), color=WHOLE, height=0.6)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.set(title="Importance", xlabel="share of variance (fANOVA)", xlim=(0, 1.1 * max(1e-9, *shares.values())))
    axes.grid(False, axis="y")
    return figure


@figures.styled
def parallel_figure(search: Search) -> Figure:
    """Every whole trial as a line over its settings and its value."""
    columns = [*search.keys, "value"]
    whole = search.whole.sort_values("value")
    figure, axes = figures.panel(1.5 * len(columns) + 0.6)
    tracks = {column: _track(search, column) for column in columns}
    value = tracks["value"][0]
    for number, (_, row) in enumerate(whole.iterrows()):
        heights = [tracks[column][0][number] for column in columns]
        won = row["trial"] == search.winner
        colour = WINNER if won else mpl.colormaps[MAP](value[number])
        axes.plot(range(len(columns)), heights, color=colour, lw=2.4 if won else 1.4, zorder=3 if won else 2)
    for place, column in enumerate(columns):
        axes.axvline(place, color=figures.INK, lw=0.8, zorder=1)
        for height, text in tracks[column][1]:
            side, align = (4, "bottom") if height == 1 else (-4, "top") if height == 0 else (0, "center")
            axes.annotate(text, (place, height), (4, side), textcoords="offset points", fontsize=8, va=align)
    names = [label(key) for key in search.keys]
    axes.set_xticks(range(len(columns)), [*names, search.summary["measure"]])
    axes.set(title="Parallel coordinates of whole trials", ylim=(-0.14, 1.14), xlim=(-0.1, len(columns) - 0.7))
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    if search.winner in set(whole["trial"]):
        axes.plot([], [], color=WINNER, lw=2.4, label="winner")
        figures.shared_legend(figure)
    return figure


def _points(axes: Axes, search: Search, column: str) -> None:
    whole, pruned = search.whole, search.pruned
    axes.scatter(whole[column], whole["value"], color=WHOLE, s=26, label="whole trial", zorder=3)
    axes.scatter(
        pruned[column], pruned["value"], marker="x", color=PRUNED, s=24, lw=1.2, label="pruned (last value)", zorder=2
    )
    won = _won(search)
    axes.scatter(won[column], won["value"], marker="*", color=WINNER, s=110, label="winner", zorder=4)


def _log(axis: Any) -> None:
    """Orders of magnitude with plain numbers at 1, 2 and 5 of each."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda at, _: f"{at:g}"))
    axis.set_minor_formatter(NullFormatter())


def _places(search: Search, rows: pd.DataFrame, key: str) -> np.ndarray:
    """A setting's values where they are drawn: as they are, or their logarithms."""
    return _scaled(rows[key].to_numpy(np.float64), search.is_log(key))


def _won(search: Search) -> pd.DataFrame:
    return search.trials[search.trials["trial"] == search.winner]


def _track(search: Search, column: str) -> tuple[list[float], list[tuple[float, str]]]:
    """Heights in [0, 1] of the whole trials in the order of their values, and what stands at the ends of the axis."""
    whole = search.whole.sort_values("value")[column]
    if column != "value" and search.summary["space"][column]["kind"] == "choice":
        names = [str(choice) for choice in search.summary["space"][column]["choices"]]
        ends = [(place / max(len(names) - 1, 1), name) for place, name in enumerate(names)]
        places = {name: height for height, name in ends}
        return [places.get(str(value), 0.0) for value in whole], ends
    log = column != "value" and search.is_log(column)
    scaled = _scaled(whole.to_numpy(np.float64), log)
    low, high = float(scaled.min()), float(scaled.max())
    width = high - low or 1.0
    ends = [(0.0, setting(float(whole.min())))] + ([(1.0, setting(float(whole.max())))] if high > low else [])
    return [float(value - low) / width for value in scaled], ends


def _scaled(values: np.ndarray, log: bool) -> np.ndarray:
    return np.log10(values) if log else values


def _triangles(x: np.ndarray, y: np.ndarray) -> Triangulation | None:
    """Triangles between the points, in the scale that they are drawn in; None where they lie on a line."""
    spans = np.ptp(x), np.ptp(y)
    if len(x) < 3 or min(spans) == 0:
        return None
    try:
        return Triangulation(x / spans[0], y / spans[1])
    except (RuntimeError, ValueError):
        return None
