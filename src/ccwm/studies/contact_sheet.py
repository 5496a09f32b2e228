"""Episodes as a contact sheet: a row for each, frames evenly spaced from its first to its last."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from ccwm.episode import Episode
from ccwm.studies.images import shown_steps

COLUMNS = 10
FRAME, BESIDE, ABOVE, BELOW = 1.1, 0.1, 0.3, 0.45
"""Inches of a frame, between two, and over and under each for its words."""


class Row(NamedTuple):
    """An episode and the words beside it."""

    title: str
    episode: Episode


def write_contact_sheet(path: Path, rows: list[Row]) -> None:
    """Draw the episodes into a PNG; under each frame stands its step and the reward that came with it."""
    width, height = COLUMNS * (FRAME + BESIDE), len(rows) * (ABOVE + FRAME + BELOW)
    figure = Figure(figsize=(width, height))
    for line, (title, episode) in enumerate(rows):
        bottom = height - line * (ABOVE + FRAME + BELOW) - ABOVE - FRAME
        for column, step in enumerate(shown_steps(len(episode.reward), COLUMNS)):
            left = BESIDE / 2 + column * (FRAME + BESIDE)
            axes = figure.add_axes((left / width, bottom / height, FRAME / width, FRAME / height))
            axes.set_axis_off()
            axes.imshow(episode.observation[step], interpolation="nearest")
            words = f"step {step}\nreward {episode.reward[step]:.3g}" if step else "reset"
            axes.text(0.5, -0.04, words, transform=axes.transAxes, ha="center", va="top", fontsize=8)
            if step == 0:
                axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    figure.savefig(path, dpi=120)
