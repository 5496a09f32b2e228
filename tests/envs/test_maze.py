"""The maze by hand arithmetic: the body is 1.5 cells wide and moves at most 0.5 cells a frame."""

import math

import numpy as np
import pytest
from small_env import small

from ccwm.envs.change import Change
from ccwm.envs.geometry import Layout, Point, parse_layout
from ccwm.envs.layouts import LAYOUTS
from ccwm.envs.maze import SPEED, MazeWorld, move
from ccwm.errors import UserError

RIGHT, LEFT, DOWN, UP = (0.5, 0.0), (-0.5, 0.0), (0.0, 0.5), (0.0, -0.5)
ROOM = "####### #CC...# #CC...# #.....# #.....# #.....# #######"
ONE_WAY = "######### #CC.>...# #CC.>...# #..#....# #..#....# #..#....# #..#....# #..#....# #########"


def walk(layout: Layout, place: Point, step: tuple[float, float], frames: int) -> Point:
    for _ in range(frames):
        place = move(layout, place, *step)
    return place


def test_a_free_body_moves_by_its_step():
    assert move(parse_layout(ROOM), Point(3.0, 3.0), 0.5, -0.25) == (3.5, 2.75)


def test_a_wall_stops_the_body_at_its_edge_and_lets_it_slide():
    room = parse_layout(ROOM)  # inner walls at 1 and 6, so the centre stays within [1.75, 5.25]
    assert move(room, Point(5.0, 3.0), 0.5, 0.5) == (5.25, 3.5)
    assert walk(room, Point(3.0, 3.0), LEFT, 20) == (1.75, 3.0)
    assert walk(room, Point(3.0, 3.0), UP, 20) == (3.0, 1.75)


def test_no_random_walk_leaves_the_free_space():
    rng = np.random.default_rng(0)
    for name in LAYOUTS:
        world = MazeWorld(name, size=32, change=Change())
        world.reset(0)
        for action in rng.choice([-1.0, -0.3, 0.7, 1.0], (500, 2)):
            world.advance(action.astype(np.float32))
            corners = [Point(world.place.x + x, world.place.y + y).cell for x in (-0.74, 0.74) for y in (-0.74, 0.74)]
            assert all(world.layout.kinds[row][column] != "#" for row, column in corners), name


def test_a_one_way_door_lets_pass_forwards_only():
    layout = parse_layout(ONE_WAY)  # the door is column 4, entered from the left
    passed = walk(layout, Point(2.5, 2.0), RIGHT, 6)
    assert passed == (5.5, 2.0)
    assert walk(layout, passed, LEFT, 20) == (4.0, 2.0)  # its centre stays in the door's own cell
    assert layout.way_to_cheese(Point(3.75, 2.0)) == pytest.approx(1.75)
    assert layout.way_to_cheese(passed) == math.inf


@pytest.mark.parametrize(("door", "step", "back"), [(">", RIGHT, LEFT), ("<", LEFT, RIGHT)])
def test_horizontal_doors_open_along_their_arrow(door: str, step: tuple[float, float], back: tuple[float, float]):
    layout = parse_layout(f"######### #CC.{door}...# #CC.{door}...# " + "######### " * 6)
    x_from, x_to = (2.0, 7.0) if door == ">" else (7.0, 2.0)
    assert abs(walk(layout, Point(x_from, 2.0), step, 20).x - x_to) < 1
    assert abs(walk(layout, Point(x_to, 2.0), back, 20).x - x_from) > 1.5


@pytest.mark.parametrize(("door", "step", "back"), [("v", DOWN, UP), ("^", UP, DOWN)])
def test_vertical_doors_open_along_their_arrow(door: str, step: tuple[float, float], back: tuple[float, float]):
    layout = parse_layout(f"####### ##CC### ##CC### ##{door * 2}### ##..### ##..### #######")
    y_from, y_to = (1.75, 5.25) if door == "v" else (5.25, 1.75)
    assert walk(layout, Point(3.0, y_from), step, 20).y == y_to
    assert abs(walk(layout, Point(3.0, y_to), back, 20).y - y_from) > 1


def test_irreversible_exactly_where_the_door_is_crossed():
    world = MazeWorld("one_way", size=32, change=Change())
    world.reset(0)
    world.place = Point(8.0, 8.0)  # the door is column 10: its cell begins at x = 10
    right = np.array([1, 0], np.float32)
    assert [world.advance(right).irreversible for _ in range(7)] == [False, False, False, True, False, False, False]
    assert not any(world.advance(-right).irreversible for _ in range(20))
    assert world.place.x == 10.0


def test_the_pit_traps_and_pays_nothing():
    world = MazeWorld("pit", size=32, change=Change())
    world.reset(0)
    world.place = Point(4.75, 8.0)  # the pit begins at x = 5
    right, up = np.array([1, 0], np.float32), np.array([-0.6, -1], np.float32)
    entered = world.advance(right)
    assert (entered.irreversible, entered.reward, entered.terminated) == (True, 0.0, False)
    for action in [right] * 30 + [up] * 30 + [-right] * 30:
        outcome = world.advance(action)
        row, column = world.place.cell
        assert world.layout.kinds[row][column] == "o"
        assert (outcome.irreversible, outcome.reward) == (False, 0.0)


def test_reward_is_one_on_the_cheese_and_shaped_elsewhere():
    world = MazeWorld("open", size=32, change=Change())
    world.reset(0)
    still = np.zeros(2, np.float32)
    world.place = Point(9.0, 13.0)  # the cheese is at (13, 13), and D from (1.75, 1.75) is 11.25 √2
    assert world.advance(still).reward == pytest.approx(0.5 * (1 - 4 / (11.25 * math.sqrt(2))))
    assert world.advance(still).success is False
    world.place = Point(11.3, 13.0)  # 1.7 away; the radii are 0.75 and 1
    assert world.advance(still).reward == 1.0
    world.place = Point(9.0, 13.0)
    assert world.advance(still).success is True  # at some time in this episode
    world.reset(None)
    assert world.advance(still).success is False


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_playable(name: str):
    world = MazeWorld(name, size=32, change=Change())
    for _ in range(50):
        world.reset(None)
        row, column = world.place.cell
        assert world.layout.kinds[row][column] == "s"
        assert math.isfinite(world.layout.way_to_cheese(world.place))
    assert world.layout.farthest / SPEED <= 100  # frames to cross it: twice in an episode of 200


def test_a_change_of_layout_moves_to_it():
    moved = small("maze_open", change=Change(layout="corridor"))
    there = small("maze_corridor")
    np.testing.assert_array_equal(moved.reset(seed=4)[0], there.reset(seed=4)[0])
    with pytest.raises(UserError, match=r"'attic'.*open, two_rooms"):
        small("maze_open", change=Change(layout="attic"))


def test_a_maze_has_no_mass():
    with pytest.raises(UserError, match=r"maze_open.*mass.*reward, layout"):
        small("maze_open", change=Change(mass=2.0))
