"""Actions in [-1, 1] and a simulator's own range; the names of a state's components."""

import numpy as np

from ccwm.envs.world import ActionRange, component_names


def test_scaling_by_hand():
    low, high = np.array([-2.0, 0.0, -np.inf, 0.0]), np.array([2.0, 10.0, np.inf, np.inf])
    scaled = ActionRange(low, high).scale(np.array([0.5, 0.5, 0.5, -1.0], np.float32))
    assert scaled.tolist() == [1.0, 7.5, 0.5, -1.0]  # without a bound on both sides the range is ±1


def test_components_are_named_in_their_flat_order():
    assert component_names("height", ()) == ("height",)
    assert component_names("velocity", (2,)) == ("velocity[0]", "velocity[1]")
    assert component_names("grid", (2, 2)) == ("grid[0,0]", "grid[0,1]", "grid[1,0]", "grid[1,1]")
    assert component_names("nothing", (0,)) == ()
