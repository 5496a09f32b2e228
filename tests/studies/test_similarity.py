from __future__ import annotations

import numpy as np
import pytest

from ccwm.studies.similarity import C1, C2, ssim, window


def noise(seed: int, size: int = 16) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)


def test_a_picture_is_like_itself_and_unlike_noise():
    assert ssim(noise(0), noise(0)) == pytest.approx(1.0)
    assert abs(float(ssim(noise(0), noise(1)))) < 0.2
    assert ssim(noise(0), noise(1)) == pytest.approx(ssim(noise(1), noise(0)))


def test_a_negative_is_unlike():
    stripes = np.zeros((16, 16, 3), np.uint8)
    stripes[:, ::2] = 255
    assert float(ssim(stripes, 255 - stripes)) < -0.9


def test_flat_greys_differ_in_luminance_alone():
    a, b = (np.full((12, 12, 1), level, np.uint8) for level in (100, 200))
    assert ssim(a, b) == pytest.approx((2 * 100 * 200 + 6.5025) / (100**2 + 200**2 + 6.5025))  # C1 = 2.55²


def test_one_window_by_its_definition():
    x, y = (noise(seed, 11)[..., :1].astype(float) for seed in (2, 3))
    weights = np.outer(window(), window())[..., None]
    assert weights.sum() == pytest.approx(1.0)
    assert weights[5, 5, 0] / weights[5, 8, 0] == pytest.approx(np.exp(0.5 * (3 / 1.5) ** 2))
    mx, my = (weights * x).sum(), (weights * y).sum()
    vx, vy = (weights * (x - mx) ** 2).sum(), (weights * (y - my) ** 2).sum()
    cov = (weights * (x - mx) * (y - my)).sum()
    expected = (2 * mx * my + C1) * (2 * cov + C2) / ((mx**2 + my**2 + C1) * (vx + vy + C2))
    assert ssim(x, y) == pytest.approx(expected)


def test_every_frame_has_its_own():
    frames = np.stack([noise(0), noise(1)])[None]  # [1, 2, 16, 16, 3]
    got = ssim(frames, np.stack([noise(0), noise(0)])[None])
    assert got.shape == (1, 2)
    assert got[0, 0] == pytest.approx(1.0)
    assert got[0, 1] == pytest.approx(float(ssim(noise(1), noise(0))))
