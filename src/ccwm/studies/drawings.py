"""What the studies of latent states show, and how it is drawn: by a stage as PNG, by the report as vectors.

Text and axes take matplotlib's current colours, so that whoever draws chooses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

COLUMNS = 12
"""Frames of a row at most."""
MANY = 2000
"""Points beyond which a map is drawn as pixels: as vectors it would be megabytes."""
SCALE = LinearSegmentedColormap.from_list("scale", ["#3b6fd4", "#2a9d8f", "#e0a800"])
"""Blue over teal to amber: rising lightness for the colour-blind, never as dark or as light as a page."""
VALUE, CHANGE, TRUNCATED, IRREVERSIBLE = "#0072b2", "#009e73", "#e69f00", "#d55e00"
FORWARD, BACK = "#0072b2", "#cc79a7"
PRINT: dict[Any, Any] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}


class Retraced(NamedTuple):
    """T consecutive steps of one episode, beginning at its step ``first``."""

    first: int
    truth: np.ndarray  # [T, size, size, 3] uint8
    forward: np.ndarray  # [T, size, size, 3] uint8, decoded from z̃
    retraced: np.ndarray  # [T, size, size, 3] uint8, decoded from ž; [0, …] for an agent that does not retrace
    forward_error: np.ndarray  # [T], mean squared error of pixels in [0, 1]
    retraced_error: np.ndarray  # [T], or [0]
    value: np.ndarray  # [T]
    change: np.ndarray  # [T], Δ of the comparison whose newest step this is; NaN in an episode's first S steps
    threshold: float  # η
    kept: np.ndarray  # [T] bool
    irreversible: np.ndarray  # [T] bool, the world's truth of the transition into the step


class TrajectoryMap(NamedTuple):
    """n consecutive states in the plane; the retraced ones, if any, share it, so that places can be compared."""

    true: np.ndarray  # [n, 2]
    retraced: np.ndarray  # [n, 2], or [0, 2] for an agent that does not retrace
    kept: np.ndarray  # [n] bool, False where the value says that the state should leave the retrace loss
    irreversible: np.ndarray  # [n] bool, the world's truth of the transition into the state


class ValueMap(NamedTuple):
    """States of many episodes in the plane, and their values."""

    points: np.ndarray  # [n, 2]
    value: np.ndarray  # [n]


def retracing_figure(shown: Retraced) -> Figure:
    """Rows of frames over value, Δ and pixel error, on one axis of time, with what is truncated and what is true."""
    rows = {"truth": shown.truth, "seen z̃": shown.forward}
    if len(shown.retraced):
        rows["retraced ž"] = shown.retraced
    steps = shown_steps(len(shown.truth))
    tile = 8.7 / len(steps)
    heights, gap, bottom, top = [len(rows) * tile, 0.95, 0.95, 0.95], 0.15, 0.8, 0.1
    wide, high = 9.6, sum(heights) + 3 * gap + bottom + top
    # Placed by hand: the constrained layout differs in its last bits from run to run, and so would the ids of the SVG.
    figure = Figure(figsize=(wide, high))
    figure.set_layout_engine("none")
    frames, value, change, error = figure.subplots(
        4,
        1,
        sharex=True,
        height_ratios=heights,
        gridspec_kw={
            "left": 0.85 / wide,
            "right": 1 - 0.05 / wide,
            "bottom": bottom / high,
            "top": 1 - top / high,
            "hspace": 4 * gap / sum(heights),
        },
    )
    _draw_frames(frames, rows, steps, shown.first)
    time = shown.first + np.arange(len(shown.truth))
    value.plot(time, shown.value, color=VALUE, lw=1.5)
    value.set_ylabel("value")
    change.plot(time, shown.change, color=CHANGE, lw=1.5)
    change.axhline(shown.threshold, color=_ink(), lw=1, ls=(0, (4, 3)), label=f"η = {shown.threshold:.3g}")
    change.set_ylabel("Δ")
    change.set_ylim(bottom=0)
    error.plot(time, shown.forward_error, color=FORWARD, lw=1.5, label="error of z̃ (seen)")
    if len(shown.retraced_error):
        error.plot(time, shown.retraced_error, color=BACK, lw=1.5, label="error of ž (retraced)")
    error.set(ylabel="MSE", xlabel="step of the episode", ylim=(0, None))
    for axes in (value, change, error):
        _mark(axes, shown)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.yaxis.set_label_coords(-0.065, 0.5)
    for at in time[shown.irreversible]:
        frames.axvline(at - 0.5, color=IRREVERSIBLE, lw=1.5)
    _legend(figure)
    return figure


def shown_steps(length: int) -> list[int]:
    """The middle step of each of up to COLUMNS equal spans."""
    columns = min(COLUMNS, length)
    return [int((2 * column + 1) * length / (2 * columns)) for column in range(columns)]


def draw_trajectory(figure: Figure | SubFigure, drawn: TrajectoryMap, *, first: int = 0) -> None:
    """True states and, beside them in the same plane, retraced ones, coloured by time; ``first`` is the first step."""
    panels = {"true states": drawn.true}
    if len(drawn.retraced):
        panels["retraced states"] = drawn.retraced
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    every = np.concatenate(list(panels.values()))
    time = first + np.arange(len(drawn.true))
    dots = None
    for axes, (title, points) in zip(grid, panels.items(), strict=True):
        axes.plot(points[:, 0], points[:, 1], color=_ink(), lw=0.5, alpha=0.25, zorder=1)
        dots = _draw_points(axes, points, time)
        axes.update_datalim(every)  # both panels show the same part of the plane
        axes.set_title(title)
    _scale(figure, dots, grid, "step")


def draw_truncated(figure: Figure | SubFigure, drawn: TrajectoryMap) -> None:
    """The trajectory with the transitions that the value says should leave, and those that the world calls final."""
    axes = figure.subplots()
    true, gone = drawn.true, ~drawn.kept
    _draw_points(axes, true, None)
    leaves = gone[1:] | gone[:-1]
    ends = np.full((len(leaves), 3, 2), np.nan)  # a gap after every transition, so that each is a line of its own
    ends[:, 0], ends[:, 1] = true[:-1], true[1:]
    for name, chosen, colour, width, alpha in (
        ("kept", ~leaves, _ink(), 0.5, 0.35),
        ("truncated", leaves, TRUNCATED, 1.8, 1.0),
    ):
        x, y = ends[chosen].reshape(-1, 2).T
        axes.plot(x, y, color=colour, lw=width, alpha=alpha, label=f"{name} ({chosen.sum()})", zorder=3)
    if drawn.irreversible.any():
        x, y = true[drawn.irreversible].T
        axes.scatter(x, y, marker="x", s=45, lw=1.8, color=IRREVERSIBLE, label="irreversible in truth", zorder=4)
    axes.set_title("truncated transitions")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, fontsize=8)


def draw_values(figure: Figure | SubFigure, maps: Mapping[str, ValueMap]) -> None:
    """One map for each variant, beside each other, coloured by value on one scale."""
    grid = figure.subplots(1, len(maps), squeeze=False)[0]
    every = np.concatenate([of.value for of in maps.values()])
    low, high = float(every.min()), float(every.max())
    dots = None
    for axes, (variant, of) in zip(grid, maps.items(), strict=True):
        dots = _draw_points(axes, of.points, of.value, low=low, high=high)
        axes.set_title(variant)
    _scale(figure, dots, grid, "value")


def embeddings_figure(variant: str, trajectory: TrajectoryMap, late: TrajectoryMap, values: ValueMap) -> Figure:
    """All maps of one agent."""
    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    whole, end, marked, worth = figure.subfigures(2, 2, squeeze=False).flat
    draw_trajectory(whole, trajectory)
    draw_trajectory(end, late, first=len(trajectory.true) - len(late.true))
    draw_truncated(marked, trajectory)
    draw_values(worth, {variant: values})
    return figure


def write_figure(path: Path, figure: Figure) -> None:
    """Write a PNG on white, the same bytes for the same figure."""
    figure.savefig(path, dpi=160, facecolor="white", metadata={"Software": None})


def _draw_frames(axes: Axes, rows: Mapping[str, np.ndarray], steps: list[int], first: int) -> None:
    """Tiles in a grid whose columns span equal times."""
    size = next(iter(rows.values())).shape[1]
    length = len(next(iter(rows.values())))
    gap = max(size // 16, 1)
    picture = np.zeros((len(rows) * (size + gap), len(steps) * (size + gap), 4), np.uint8)
    for row, frames in enumerate(rows.values()):
        for column, step in enumerate(steps):
            top, left = row * (size + gap) + gap // 2, column * (size + gap) + gap // 2
            tile = np.concatenate([frames[step], np.full((size, size, 1), 255, np.uint8)], -1)
            picture[top : top + size, left : left + size] = tile
    extent = (first - 0.5, first + length - 0.5, len(rows), 0)
    axes.imshow(picture, extent=extent, aspect="auto", interpolation="none")
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
    axes.tick_params(length=0, labelbottom=False)
    axes.grid(False)
    axes.spines[:].set_visible(False)


def _draw_points(
    axes: Axes, points: np.ndarray, colour: np.ndarray | None, *, low: float | None = None, high: float | None = None
) -> Any:
    size = float(np.clip(3000 / max(len(points), 1), 2, 14))
    style: dict[str, Any] = {"s": size, "lw": 0, "zorder": 2, "rasterized": len(points) > MANY}
    x, y = points.T
    if colour is None:
        dots = axes.scatter(x, y, color=_ink(), alpha=0.35, **style)
    else:
        dots = axes.scatter(x, y, c=colour, cmap=SCALE, vmin=low, vmax=high, **style)
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", "datalim")
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return dots


def _scale(figure: Figure | SubFigure, dots: Any, grid: Any, label: str) -> None:
    """A thin bar below the axes that says what the colours mean."""
    bar = figure.colorbar(dots, ax=list(grid), label=label, location="bottom", aspect=60, shrink=0.7)
    bar.outline.set_visible(False)
    bar.ax.xaxis.set_major_locator(MaxNLocator(5))


def _mark(axes: Axes, shown: Retraced) -> None:
    """Shade what is not kept, and draw a line at each transition that cannot be undone."""
    gone = np.concatenate([[False], ~shown.kept, [False]]).astype(np.int8)
    for first, after in np.flatnonzero(np.diff(gone)).reshape(-1, 2):
        axes.axvspan(
            shown.first + first - 0.5, shown.first + after - 0.5, color=TRUNCATED, alpha=0.25, lw=0, label="truncated"
        )
    for at in np.flatnonzero(shown.irreversible):
        axes.axvline(shown.first + at - 0.5, color=IRREVERSIBLE, lw=1.5, label="irreversible in truth")


def _legend(figure: Figure) -> None:
    drawn: dict[Any, Any] = {}
    for axes in figure.axes:
        lines, labels = axes.get_legend_handles_labels()
        drawn.update(zip(labels, lines, strict=True))
    figure.legend(drawn.values(), drawn.keys(), loc="lower left", ncols=len(drawn), fontsize=8.5)


def _ink() -> str:
    return str(mpl.rcParams["text.color"])
