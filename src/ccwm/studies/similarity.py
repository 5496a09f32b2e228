"""How alike two pictures look: the structural similarity index."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import correlate1d

RADIUS, SIGMA = 5, 1.5
"""The 11 × 11 Gaussian window of Wang et al. (2004)."""
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def ssim(frames: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Structural similarity of each frame with its truth.   uint8 [..., height, width, channels] each → [...].

    (2 μx μy + C1)(2 σxy + C2) / ((μx² + μy² + C1)(σx² + σy² + C2)), with weighted moments in an 11 × 11 Gaussian window
    (σ = 1.5, C1 = (0.01 · 255)², C2 = (0.03 · 255)²), averaged over channels and all windows that lie within the frame.
    """
    x, y = frames.astype(np.float64), truth.astype(np.float64)
    mean_x, mean_y = _windowed(x), _windowed(y)
    var_x, var_y = _windowed(x * x) - mean_x**2, _windowed(y * y) - mean_y**2
    covariance = _windowed(x * y) - mean_x * mean_y
    luminance = (2 * mean_x * mean_y + C1) / (mean_x**2 + mean_y**2 + C1)
    structure = (2 * covariance + C2) / (var_x + var_y + C2)
    return np.asarray((luminance * structure).mean((-3, -2, -1)))


def window() -> np.ndarray:
    """The window's weights along one axis, which sum to 1.   → [11]."""
    weights = np.exp(-0.5 * (np.arange(-RADIUS, RADIUS + 1) / SIGMA) ** 2)
    return np.asarray(weights / weights.sum())


def _windowed(values: np.ndarray) -> np.ndarray:
    """Weighted mean in every whole window.   [..., height, width, C] → [..., height − 10, width − 10, C]."""
    for axis in (-3, -2):
        values = correlate1d(values, window(), axis, mode="nearest")
    return values[..., RADIUS:-RADIUS, RADIUS:-RADIUS, :]
