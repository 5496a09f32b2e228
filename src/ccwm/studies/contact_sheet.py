"""Episodes of pixels as a contact sheet: a row for each, frames evenly spaced from its first to its last."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from ccwm.episode import Episode
from ccwm.studies.images import bare, shown_steps, tiled

COLUMNS = 10
WIDTH, HEIGHT = 12.0, 1.85
"""Inches of the sheet and of one row, with room for the words over and under it."""


class Row(NamedTuple):
    """An episode and the words beside it."""

    title: str
    episode: Episode


def write_contact_sheet(path: Path, rows: list[Row]) -> None:
    """Draw the episodes into a PNG; under each frame stands its step and the reward that came with it."""
    figure = Figure(figsize=(WIDTH, HEIGHT * len(rows)), layout="constrained")
    for axes, (title, episode) in zip(figure.subplots(len(rows), squeeze=False).flat, rows, strict=True):
        steps, size = shown_steps(len(episode.reward), COLUMNS), episode.observation.shape[1]
        gap = max(size // 12, 1)
        lefts = [column * (size + gap) for column in range(len(steps))]
        axes.imshow(tiled([episode.observation[steps]], lefts, gap), interpolation="nearest")
        words = [f"step {step}\nreward {episode.reward[step]:.3g}" if step else "reset" for step in steps]
        axes.set_xticks([left + size / 2 for left in lefts], words, fontsize=8)
        axes.set_yticks([])
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        bare(axes)
    figure.savefig(path, dpi=120)
