"""Frames side by side, as a PNG strip and as an MP4."""

from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import numpy as np

from ccwm.studies.prediction import Prediction

SHOWN_PIXELS = 128
"""Least height of a frame in a picture; smaller ones are enlarged by whole pixels."""
FRAMES_PER_SECOND = 10


def error_frames(predicted: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Signed error around mid-grey: uint8 [..., 3] each → uint8 [..., 3]."""
    return np.asarray((predicted.astype(np.int16) - truth) // 2 + 128, np.uint8)


def enlarge(frames: np.ndarray) -> np.ndarray:
    """Repeat pixels until a frame is at least SHOWN_PIXELS high.   [..., height, width, 3] → larger."""
    factor = -(-SHOWN_PIXELS // frames.shape[-3])
    return frames.repeat(factor, -3).repeat(factor, -2)


def strip(prediction: Prediction, index: int, *, every: int) -> np.ndarray:
    """Rows truth, prediction and error; a column for every ``every``-th step.   → uint8 [height, width, 3]."""
    truth, predicted = prediction.truth[index, ::every], prediction.predicted[index, ::every]
    rows = (truth, predicted, error_frames(predicted, truth))
    return np.concatenate([np.concatenate(list(enlarge(row)), 1) for row in rows], 0)


def film(prediction: Prediction, index: int) -> np.ndarray:
    """Truth, prediction and error side by side, a frame a step.   → uint8 [T, height, width, 3]."""
    truth, predicted = prediction.truth[index], prediction.predicted[index]
    return enlarge(np.concatenate([truth, predicted, error_frames(predicted, truth)], 2))


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
