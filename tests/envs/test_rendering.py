"""Images by numpy."""

import numpy as np
import pytest

from ccwm.envs.change import Change
from ccwm.envs.geometry import Point, load_layout
from ccwm.envs.maze import MazeWorld
from ccwm.envs.rendering import DOOR_IN, DOOR_OUT, FLOOR, PIT, WALL, area_resize, render_background


def test_area_averaging_by_hand():
    image = np.array([[0, 60, 120], [60, 120, 180], [120, 180, 240]], np.uint8)[..., None].repeat(3, 2)
    # 3 → 2 pixels: weights (2/3, 1/3) and (1/3, 2/3) along each axis; the picture is 60 · (row + column).
    expected = [[40, 80 + 40], [80 + 40, 200]]
    np.testing.assert_array_equal(area_resize(image, 2)[..., 0], expected)
    np.testing.assert_array_equal(area_resize(image, 3), image)


@pytest.mark.parametrize("size", [32, 64])
def test_cells_have_their_colours(size: int):
    pixels = size // 16
    image = render_background(load_layout("one_way"), size)
    assert image.shape == (size, size, 3)
    assert image[0, 0].tolist() == list(WALL)
    assert image[2 * pixels, 2 * pixels].tolist() == list(FLOOR)
    door = image[7 * pixels, 10 * pixels : 11 * pixels]  # entered from the left
    assert (door[0].tolist(), door[-1].tolist()) == (list(DOOR_IN), list(DOOR_OUT))
    assert render_background(load_layout("pit"), size)[8 * pixels, 8 * pixels].tolist() == list(PIT)


def test_motion_below_a_pixel_shows():
    world = MazeWorld("open", size=32, change=Change())
    world.reset(0)
    centres = []
    for x in (8.0, 8.1):  # 0.1 cells are 0.2 pixels
        world.place = Point(x, 8.0)
        blackness = 765 - world.render()[8:24, 8:24].sum(axis=-1).astype(float)
        blackness -= blackness.min()  # the floor
        centres.append((blackness.sum(axis=0) * np.arange(16)).sum() / blackness.sum())
    assert centres[1] - centres[0] == pytest.approx(0.2, abs=0.03)
