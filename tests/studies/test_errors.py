from __future__ import annotations

import math

import numpy as np
import pytest

from ccwm.studies.errors import squared_error, targets

from .trained_agent import small_agent


def test_pixels_lie_within_a_range_of_one():
    model = small_agent().modelled.world_model
    frames = np.zeros((2, 32, 32, 3), np.uint8)
    frames[1] = 255
    assert targets(model, frames).shape == (2, 32 * 32 * 3)
    assert (targets(model, frames)[1] - targets(model, frames)[0]).tolist() == [1.0] * 3072
    frames[0] = 204
    assert squared_error(model, frames[:1], frames[1:]).tolist() == pytest.approx([0.04])  # 51 / 255 = 0.2


def test_states_are_compared_where_the_decoder_predicts_them():
    model = small_agent(observation="state").modelled.world_model
    states = np.array([[0.0, math.e - 1], [1 - math.e, math.e**2 - 1]])
    assert targets(model, states) == pytest.approx(np.array([[0, 1], [-1, 2]]))
    assert squared_error(model, states[:1], states[1:]).tolist() == pytest.approx([1.0])  # (1 + 1) / 2
