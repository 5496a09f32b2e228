"""Frames as pictures and films on disk."""

from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import numpy as np

SHOWN_PIXELS = 128
"""Least height of a frame in a picture; smaller ones are enlarged by whole pixels."""
FRAMES_PER_SECOND = 10


def enlarge(frames: np.ndarray) -> np.ndarray:
    """Repeat pixels until a frame is at least SHOWN_PIXELS high.   [..., height, width, 3] → larger."""
    factor = -(-SHOWN_PIXELS // frames.shape[-3])
    return frames.repeat(factor, -3).repeat(factor, -2)


def write_png(path: Path, image: np.ndarray) -> None:
    """Write uint8 [height, width, 3]."""
    iio.imwrite(path, image)


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
