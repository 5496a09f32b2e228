"""Actions in [-1, 1] and a simulator's own range."""

import numpy as np

from ccwm.envs.world import scale_action


def test_scaling_by_hand():
    low, high = np.array([-2.0, 0.0, -np.inf, 0.0]), np.array([2.0, 10.0, np.inf, np.inf])
    scaled = scale_action(np.array([0.5, 0.5, 0.5, -1.0], np.float32), low, high)
    assert scaled.tolist() == [1.0, 7.5, 0.5, -1.0]  # without a bound on both sides the range is ±1
