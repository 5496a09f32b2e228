from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import numpy as np

from ccwm.studies.images import SHOWN_PIXELS, enlarge, shown_steps, tiled, write_mp4


def test_shown_steps_are_evenly_spaced_from_the_first_to_the_last():
    assert shown_steps(101, 10).tolist() == [0, 11, 22, 33, 44, 56, 67, 78, 89, 100]  # 100 / 9 = 11.1… apart
    assert shown_steps(3, 10).tolist() == [0, 1, 2]


def test_small_frames_are_enlarged_by_whole_pixels():
    frame = np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3)
    assert enlarge(frame).shape == (SHOWN_PIXELS, SHOWN_PIXELS, 3)
    assert np.array_equal(enlarge(frame)[::4, ::4], frame)


def test_tiles_stand_where_they_are_put_and_gaps_are_transparent():
    row = np.stack([np.full((2, 2, 3), level, np.uint8) for level in (10, 20)])
    picture = tiled([row, row], [0, 3], 1)
    assert picture.shape == (5, 5, 4)
    assert picture[0, 3].tolist() == [20, 20, 20, 255]
    assert picture[:, 2, 3].tolist() == [0] * 5
    assert picture[2, :, 3].tolist() == [0] * 5


def test_a_video_has_the_same_bytes_for_the_same_frames(tmp_path: Path):
    frames = np.random.default_rng(0).integers(0, 256, (7, 64, 96, 3), dtype=np.uint8)
    for name in ("first.mp4", "second.mp4"):
        write_mp4(tmp_path / name, frames)
    assert (tmp_path / "first.mp4").read_bytes() == (tmp_path / "second.mp4").read_bytes()
    assert iio.imread(tmp_path / "first.mp4").shape == frames.shape
