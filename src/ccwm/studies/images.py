"""Frames as pictures and videos on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PICTURES = "pictures"
"""The folder of a cell's results that holds what is drawn and its arrays: what is in it differs by observation."""
SHOWN_PIXELS = 128
"""Least height of a frame in a video; smaller ones are enlarged by whole pixels."""
FRAMES_PER_SECOND = 10
PRINT: dict[Any, Any] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
"""Matplotlib's settings for the figures that a stage writes."""


def shown_steps(length: int, columns: int) -> np.ndarray:
    """Up to ``columns`` evenly spaced steps of ``length``, the first and the last among them.   → int, rising."""
    return np.unique(np.linspace(0, length - 1, columns).round().astype(int))


def enlarge(frames: np.ndarray) -> np.ndarray:
    """Repeat pixels until a frame is at least SHOWN_PIXELS high.   [..., height, width, C] → larger."""
    factor = -(-SHOWN_PIXELS // frames.shape[-3])
    return frames.repeat(factor, -3).repeat(factor, -2)


def tiled(rows: Sequence[np.ndarray], lefts: Sequence[int], gap: int) -> np.ndarray:
    """Rows of tiles in one picture with transparent gaps.   uint8 [columns, size, size, 3 or 4] each → [..., 4].

    ``lefts`` is the first pixel of each column.
    """
    size = rows[0].shape[1]
    picture = np.zeros((len(rows) * (size + gap) - gap, lefts[-1] + size, 4), np.uint8)
    for row, tiles in enumerate(rows):
        top = row * (size + gap)
        for left, tile in zip(lefts, tiles, strict=True):
            picture[top : top + size, left : left + size, 3] = 255
            picture[top : top + size, left : left + size, : tile.shape[-1]] = tile
    return picture


def bare(axes: Axes) -> None:
    """Leave nothing around a picture but its labels."""
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)


def ink() -> str:
    """The colour of text and axes, which whoever draws has chosen."""
    return str(mpl.rcParams["text.color"])


def write_figure(path: Path, figure: Figure, *, dpi: int = 160) -> None:
    """Write a PNG on white, the same bytes for the same figure."""
    figure.savefig(path, dpi=dpi, facecolor="white", metadata={"Software": None})


def write_mp4(path: Path, frames: np.ndarray) -> None:
    """Write uint8 [T, height, width, 3] as H.264 that browsers play, the same bytes for the same frames."""
    iio.imwrite(
        path,
        frames,
        fps=FRAMES_PER_SECOND,
        codec="libx264",
        macro_block_size=2,
        output_params=["-threads", "1", "-fflags", "+bitexact", "-movflags", "+faststart", "-crf", "18"],
    )
