"""Distances and zones by hand arithmetic: the body is 1.5 cells wide."""

import math

import pytest

from ccwm.envs.geometry import Point, cells_of, may_pass, parse_layout

ROOM = "####### #CC...# #CC...# #.....# #.....# #.....# #######"


def test_what_may_be_passed():
    kinds = ("#####", "#.>.#", "#oo.#", "#####")
    assert may_pass(kinds, (1, 1), (1, 2))
    assert not may_pass(kinds, (1, 2), (1, 1))  # against the arrow
    assert not may_pass(kinds, (1, 1), (0, 1))  # a wall
    assert may_pass(kinds, (1, 1), (2, 1))
    assert not may_pass(kinds, (2, 1), (1, 1))  # a pit is never left
    assert may_pass(kinds, (2, 1), (2, 2))
    assert cells_of(kinds, "o>") == [(1, 2), (2, 1), (2, 2)]


def test_geodesic_distance_goes_straight_in_a_room():
    room = parse_layout(ROOM)  # the cheese is at (2, 2)
    assert room.cheese == (2.0, 2.0)
    assert room.way_to_cheese(Point(5.0, 2.0)) == pytest.approx(3.0)
    assert room.way_to_cheese(Point(4.0, 4.0)) == pytest.approx(2 * math.sqrt(2))
    assert room.way_to_cheese(Point(5.1, 2.0)) == pytest.approx(3.1)  # between two nodes
    assert room.farthest == pytest.approx(3.25 * math.sqrt(2))  # from the corner (5.25, 5.25)


def test_geodesic_distance_goes_round_a_wall():
    # A wall at x = 4..5, y = 1..4 stands between (2.5, 2) and the cheese at (7, 2); the centre must pass below it, at
    # y ≥ 4.75 while 3.25 ≤ x ≤ 5.75.
    layout = parse_layout("######### #...#.CC# #...#.CC# #...#...# #.......# #.......# #.......# #.......# #########")
    way = layout.way_to_cheese(Point(2.5, 2.0))
    down = 0.75 * math.sqrt(2) + 2.0  # (2.5, 2) → (3.25, 4.75) on eight-way steps
    up = 1.25 * math.sqrt(2) + 1.5  # (5.75, 4.75) → (7, 2)
    assert way == pytest.approx(down + 2.5 + up)
    assert way > math.dist((2.5, 2.0), layout.cheese) + 3


def test_a_one_way_door_on_a_ring_can_be_retraced():
    ring = parse_layout("######## #CC>...# #CC>...# #..##..# #..##..# #......# #......# ########")
    assert len(set(ring.zone[ring.zone >= 0].tolist())) == 1
