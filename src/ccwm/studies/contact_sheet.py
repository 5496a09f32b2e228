"""Episodes as a contact sheet: a row for each, frames evenly spaced from its first to its last."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from ccwm.structs import Episode

COLUMNS = 10
INCHES = 1.2
"""Width of a frame on the sheet."""


class Row(NamedTuple):
    """An episode and the words beside it."""

    title: str
    episode: Episode


def shown_steps(length: int, columns: int = COLUMNS) -> np.ndarray:
    """Up to ``columns`` steps of an episode of ``length``, the first and the last among them.   → int, rising."""
    return np.unique(np.linspace(0, length - 1, columns).round().astype(int))


def write_contact_sheet(path: Path, rows: list[Row]) -> None:
    """Draw the episodes into a PNG; under each frame stands its step and the reward that came with it."""
    figure = Figure(figsize=(INCHES * COLUMNS, (INCHES + 0.65) * len(rows)), layout="constrained")
    grid = np.atleast_2d(figure.subplots(len(rows), COLUMNS))
    for axes in grid.flat:
        axes.set_axis_off()
    for line, (title, episode) in zip(grid, rows, strict=True):
        heading = line[0].set_title(title, loc="left", fontsize=10, fontweight="bold")
        heading.set_in_layout(False)  # it reaches over the frames beside it, which need not make room
        for axes, step in zip(line, shown_steps(len(episode.reward)), strict=False):
            axes.imshow(episode.image[step], interpolation="nearest")
            words = f"step {step}\nreward {episode.reward[step]:.3g}" if step else "reset"
            axes.text(0.5, -0.04, words, transform=axes.transAxes, ha="center", va="top", fontsize=8)
    figure.savefig(path, dpi=120)
