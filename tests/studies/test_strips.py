from __future__ import annotations

import numpy as np

from ccwm.studies.images import SHOWN_PIXELS
from ccwm.studies.strips import GAP, HEAD, Strip, strip_figure, video


def strip(steps: int = 4, context: int = 2) -> Strip:
    truth = np.random.default_rng(0).integers(0, 256, (steps, 32, 32, 3), dtype=np.uint8)
    wrong = truth.copy()
    wrong[2] = 255 - truth[2]
    return Strip(context, truth, {"dreamer": wrong, "ccwm": truth})


def test_a_strip_shows_the_end_of_the_context_and_the_last_prediction():
    assert strip(50, 5).steps == [3, 4, 5, 11, 18, 24, 30, 36, 43, 49]
    assert strip(3, 1).steps == [0, 1, 2]


def test_errors_share_one_scale():
    errors = strip().errors([1, 2])
    assert np.array_equal(errors["ccwm"][0], errors["dreamer"][0])  # none
    assert errors["dreamer"][1].mean() > errors["ccwm"][1].mean() + 20


def test_a_strip_has_a_row_for_the_truth_and_two_for_each_variant():
    (axes,) = strip_figure(strip()).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["truth", "dreamer", "error", "ccwm", "error"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["seen", "seen", "+1", "+2"]


def test_a_video_has_truth_and_predictions_above_and_errors_below():
    frames = video(strip())
    wide = SHOWN_PIXELS + GAP
    assert frames.shape == (4, HEAD + 2 * SHOWN_PIXELS + GAP, 3 * wide - GAP, 3)
    assert all(side % 2 == 0 for side in frames.shape[1:3])  # H.264 halves the resolution of colours
    above, below = frames[:, HEAD : HEAD + SHOWN_PIXELS], frames[:, HEAD + SHOWN_PIXELS + GAP :]
    assert np.array_equal(above[:, ::4, :SHOWN_PIXELS:4], strip().truth)
    assert np.array_equal(above[:, :, :SHOWN_PIXELS], above[:, :, 2 * wide :])  # ccwm is right at every step
    dark = below[0, :, wide : wide + SHOWN_PIXELS]
    assert np.array_equal(dark, below[3, :, 2 * wide :])  # no error, here and there
    assert below[2, :, wide : wide + SHOWN_PIXELS].mean() > dark.mean() + 20
    seen, predicted = (below[step, :, :SHOWN_PIXELS] for step in (1, 2))
    assert not np.array_equal(seen, predicted)  # the words under the truth
