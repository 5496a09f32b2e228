"""Truth, prediction and error side by side, as a strip and as a film."""

from __future__ import annotations

import numpy as np

from ccwm.studies.images import enlarge
from ccwm.studies.prediction import Prediction


def error_frames(predicted: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Signed error around mid-grey: uint8 [..., 3] each → uint8 [..., 3]."""
    return np.asarray((predicted.astype(np.int16) - truth) // 2 + 128, np.uint8)


def strip(prediction: Prediction, index: int, *, every: int) -> np.ndarray:
    """Rows truth, prediction and error; a column for every ``every``-th step.   → uint8 [height, width, 3]."""
    truth, predicted = prediction.truth[index, ::every], prediction.predicted[index, ::every]
    rows = (truth, predicted, error_frames(predicted, truth))
    return np.concatenate([np.concatenate(list(enlarge(row)), 1) for row in rows], 0)


def film(prediction: Prediction, index: int) -> np.ndarray:
    """Truth, prediction and error side by side, a frame a step.   → uint8 [T, height, width, 3]."""
    truth, predicted = prediction.truth[index], prediction.predicted[index]
    return enlarge(np.concatenate([truth, predicted, error_frames(predicted, truth)], 2))
