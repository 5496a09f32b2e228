from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import numpy as np

from ccwm.studies.images import SHOWN_PIXELS, enlarge, write_mp4, write_png
from ccwm.studies.pictures import error_frames, film, strip
from ccwm.studies.prediction import Prediction


def prediction(steps: int = 7) -> Prediction:
    random = np.random.default_rng(0)
    truth, predicted = random.integers(0, 256, (2, 1, steps, 32, 32, 3), dtype=np.uint8)
    return Prediction(truth, predicted, np.empty(0), np.empty(0))


def test_no_error_is_mid_grey():
    truth = np.array([[[0, 100, 255]]], np.uint8)
    assert error_frames(truth, truth).tolist() == [[[128, 128, 128]]]
    assert error_frames(np.array([[[255, 90, 0]]], np.uint8), truth).tolist() == [
        [[255, 123, 0]]
    ]  # ½ (predicted − true)


def test_a_strip_has_a_row_each_for_truth_prediction_and_error(tmp_path: Path):
    picture = strip(prediction(), 0, every=3)
    assert picture.shape == (3 * SHOWN_PIXELS, 3 * SHOWN_PIXELS, 3)  # steps 0, 3 and 6
    assert np.array_equal(picture[:SHOWN_PIXELS, SHOWN_PIXELS : 2 * SHOWN_PIXELS], enlarge(prediction().truth[0, 3]))
    write_png(tmp_path / "strip.png", picture)
    assert np.array_equal(iio.imread(tmp_path / "strip.png"), picture)


def test_a_film_has_the_same_bytes_for_the_same_frames(tmp_path: Path):
    frames = film(prediction(), 0)
    assert frames.shape == (7, SHOWN_PIXELS, 3 * SHOWN_PIXELS, 3)
    for name in ("first.mp4", "second.mp4"):
        write_mp4(tmp_path / name, frames)
    assert (tmp_path / "first.mp4").read_bytes() == (tmp_path / "second.mp4").read_bytes()
    assert iio.imread(tmp_path / "first.mp4").shape == frames.shape
