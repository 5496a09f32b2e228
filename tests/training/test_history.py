"""What training reports of its learning curve."""

import numpy as np
import pytest

from ccwm.training.history import mean_height


def test_the_mean_height_of_a_curve_is_its_area_over_its_width():
    # Trapezia (1 + 3)/2 · 2 and (3 + 0)/2 · 4 make 10, over a width of 6
    assert mean_height(np.array([1, 3, 7]), np.array([1.0, 3.0, 0.0])) == pytest.approx(10 / 6)
    assert mean_height(np.array([5]), np.array([2.5])) == 2.5
