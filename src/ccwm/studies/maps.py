"""Maps of latent states in the plane, and how they are drawn: by a stage as PNG, by the report as vectors.

Text and axes take matplotlib's current colours, so that whoever draws chooses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from ccwm.studies.images import bare, ink

MANY = 2000
"""Points beyond which a map is drawn as pixels: as vectors it would be megabytes."""
SCALE = LinearSegmentedColormap.from_list("scale", ["#3b6fd4", "#2a9d8f", "#e0a800"])
"""Blue over teal to amber: rising lightness for the colour-blind, never as dark or as light as a page."""
TRUNCATED, IRREVERSIBLE = "#e69f00", "#d55e00"


class TrajectoryMap(NamedTuple):
    """n consecutive states in the plane; the retraced ones, if any, share it, so that places can be compared."""

    true: np.ndarray  # [n, 2]
    retraced: np.ndarray  # [n, 2], or [0, 2] for an agent that does not retrace
    kept: np.ndarray  # [n] bool, False where the value says that the state should leave the retrace loss
    irreversible: np.ndarray  # [n] bool, the true label of the transition into the state


class ValueMap(NamedTuple):
    """States of many episodes in the plane, and their values."""

    points: np.ndarray  # [n, 2]
    value: np.ndarray  # [n]


def draw_trajectory(figure: Figure | SubFigure, drawn: TrajectoryMap, *, first: int = 0) -> None:
    """True states and, beside them in the same plane, retraced ones, coloured by time; ``first`` is the first step."""
    panels = {"true states": drawn.true}
    if len(drawn.retraced):
        panels["retraced states"] = drawn.retraced
    every, time = np.concatenate(list(panels.values())), first + np.arange(len(drawn.true))
    grid = _draw_coloured(figure, {title: (points, time) for title, points in panels.items()}, "step")
    for axes, points in zip(grid, panels.values(), strict=True):
        axes.plot(points[:, 0], points[:, 1], color=ink(), lw=0.5, alpha=0.25, zorder=1)
        axes.update_datalim(every)  # both panels show the same part of the plane


def draw_truncated(figure: Figure | SubFigure, drawn: TrajectoryMap) -> None:
    """The trajectory with the transitions that the value says should leave, and those that are irreversible."""
    axes = figure.subplots()
    true, gone = drawn.true, ~drawn.kept
    _draw_points(axes, true, color=ink(), alpha=0.35)
    leaves = gone[1:] | gone[:-1]
    ends = np.full((len(leaves), 3, 2), np.nan)  # a gap after every transition, so that each is a line of its own
    ends[:, 0], ends[:, 1] = true[:-1], true[1:]
    for name, chosen, colour, width, alpha in (
        ("kept", ~leaves, ink(), 0.5, 0.35),
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
    _draw_coloured(figure, maps, "value")


def maps_figure(variant: str, trajectory: TrajectoryMap, late: TrajectoryMap, values: ValueMap) -> Figure:
    """All maps of one agent."""
    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    whole, end, marked, worth = figure.subfigures(2, 2, squeeze=False).flat
    draw_trajectory(whole, trajectory)
    draw_trajectory(end, late, first=len(trajectory.true) - len(late.true))
    draw_truncated(marked, trajectory)
    draw_values(worth, {variant: values})
    return figure


def _draw_coloured(
    figure: Figure | SubFigure, panels: Mapping[str, tuple[np.ndarray, np.ndarray]], label: str
) -> list[Axes]:
    """Points and their numbers by title, in colours on one scale, with a thin bar below that says what they mean."""
    grid = list(figure.subplots(1, len(panels), squeeze=False)[0])
    every = np.concatenate([numbers for _, numbers in panels.values()])
    for axes, (title, (points, numbers)) in zip(grid, panels.items(), strict=True):
        dots = _draw_points(axes, points, c=numbers, cmap=SCALE, vmin=every.min(), vmax=every.max())
        axes.set_title(title)
    bar = figure.colorbar(dots, ax=grid, label=label, location="bottom", aspect=60, shrink=0.7)
    bar.outline.set_visible(False)
    bar.ax.xaxis.set_major_locator(MaxNLocator(5))
    return grid


def _draw_points(axes: Axes, points: np.ndarray, **colours: Any) -> Any:
    size = float(np.clip(3000 / max(len(points), 1), 2, 14))
    dots = axes.scatter(points[:, 0], points[:, 1], s=size, lw=0, zorder=2, rasterized=len(points) > MANY, **colours)
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", "datalim")
    bare(axes)
    return dots
