"""Every layout can be played."""

import itertools

import numpy as np
import pytest

from ccwm.envs.geometry import FREE, load_layout
from ccwm.envs.layouts import LAYOUTS


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_square_walled_in_and_has_cheese_and_a_start(name: str):
    kinds = np.array([list(line) for line in LAYOUTS[name].split()])
    assert kinds.shape == (16, 16)
    assert {*kinds[0], *kinds[-1], *kinds[:, 0], *kinds[:, -1]} == {"#"}
    assert {*kinds.ravel()} <= {"#", *FREE}
    assert ((kinds == "C").sum(), (kinds == "s").sum()) == (4, 16)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_passage_is_wide_enough(name: str):
    free = np.array([[kind != "#" for kind in line] for line in load_layout(name).kinds])
    blocks = free[:-1, :-1] & free[1:, :-1] & free[:-1, 1:] & free[1:, 1:]
    wide = np.zeros_like(free)
    for down, right in itertools.product((0, 1), repeat=2):
        wide[down : down + 15, right : right + 15] |= blocks
    assert (wide == free).all()  # every free cell belongs to a 2 × 2 block
