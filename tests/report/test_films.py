from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import numpy as np

from ccwm.report.films import GAP, HEAD, film, write_film
from ccwm.report.strips import Strip
from ccwm.studies.images import SHOWN_PIXELS


def strip(steps: int = 4) -> Strip:
    truth = np.random.default_rng(0).integers(0, 256, (steps, 32, 32, 3), dtype=np.uint8)
    wrong = truth.copy()
    wrong[2] = 255 - truth[2]
    return Strip(0, 2, truth, {"dreamer": wrong, "ccwm": truth})


def test_truth_and_predictions_above_and_errors_below() -> None:
    frames = film(strip())
    wide = SHOWN_PIXELS + GAP
    assert frames.shape == (4, HEAD + 2 * SHOWN_PIXELS + GAP, 3 * wide - GAP, 3)
    above = frames[:, HEAD : HEAD + SHOWN_PIXELS]
    below = frames[:, HEAD + SHOWN_PIXELS + GAP :]
    assert np.array_equal(above[:, ::4, :SHOWN_PIXELS:4], strip().truth)
    assert np.array_equal(above[:, :, :SHOWN_PIXELS], above[:, :, 2 * wide :])  # ccwm is right at every step
    dark = below[0, :, wide : wide + SHOWN_PIXELS]
    assert np.array_equal(dark, below[3, :, 2 * wide :])  # no error, here and there
    assert below[2, :, wide : wide + SHOWN_PIXELS].mean() > dark.mean() + 20
    seen, predicted = (below[step, :, :SHOWN_PIXELS] for step in (1, 2))
    assert not np.array_equal(seen, predicted)  # the words under the truth


def test_episodes_follow_each_other_with_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first.mp4", "second.mp4"):
        write_film(tmp_path / name, [strip(), strip(3)])
    assert (tmp_path / "first.mp4").read_bytes() == (tmp_path / "second.mp4").read_bytes()
    assert iio.imread(tmp_path / "first.mp4").shape == (7, *film(strip()).shape[1:])
