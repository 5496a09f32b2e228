"""Looking for the cheese in rooms joined by doors: the paper's motivating example, without any simulator library.

Reward of a frame: 1 while the agent touches the cheese, otherwise 0.5 · (1 − d / D), where d is the geodesic distance
to the cheese and D the longest one of the layout; 0 where no way leads to the cheese any more.
"""

from __future__ import annotations

import math

import numpy as np

from ccwm.envs.change import Change
from ccwm.envs.geometry import RADIUS, Layout, Point, cells_of, load_layout, may_pass
from ccwm.envs.layouts import LAYOUTS
from ccwm.envs.rendering import AGENT, CHEESE, paint_disk, render_background
from ccwm.envs.world import Image, Outcome, Vector
from ccwm.errors import UserError, did_you_mean

SPEED = 0.5
"""Cells that a frame moves along an axis at most; below 1, so that no wall is jumped over."""
CHEESE_RADIUS = 1.0
SHAPING = 0.5
SKIN = 1e-6
"""Distance kept from a border that may not be crossed and belongs to the other side."""


class MazeWorld:
    """A body with a velocity for its action, [2] to the right and downwards, that slides along walls."""

    action_size = 2
    observation_names = ("x", "y")

    def __init__(self, layout: str, *, size: int, change: Change) -> None:
        change.allow_only("layout", task=f"maze_{layout}")
        name = change.layout or layout
        if name not in LAYOUTS:
            raise UserError(f"unknown maze layout {name!r}.{did_you_mean(name, LAYOUTS)}")
        self.layout = load_layout(name)
        self.place = self.layout.cheese
        self._starts = cells_of(self.layout.kinds, "s")
        self._rng = np.random.default_rng()
        self._success = False
        self._background = render_background(self.layout, size)
        paint_disk(self._background, self.layout.cheese, CHEESE_RADIUS, CHEESE, len(self.layout.kinds))

    def reset(self, seed: int | None) -> None:
        """Put the agent at random into the start region."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._success = False
        while True:  # until the body is clear of the walls
            row, column = self._starts[self._rng.integers(len(self._starts))]
            right, down = self._rng.random(2)
            self.place = Point(float(column + right), float(row + down))
            if _is_free(self.layout, self.place):
                return

    def advance(self, action: Vector) -> Outcome:
        """Move for one frame with the velocity [2], in shares of the top speed."""
        before = self.layout.zone_at(self.place)
        self.place = move(self.layout, self.place, SPEED * float(action[0]), SPEED * float(action[1]))
        touching = math.dist(self.place, self.layout.cheese) <= RADIUS + CHEESE_RADIUS
        self._success |= touching
        way = self.layout.way_to_cheese(self.place)
        reward = 1.0 if touching else SHAPING * max(0.0, 1 - way / self.layout.farthest)
        return Outcome(reward, irreversible=self.layout.zone_at(self.place) != before, success=self._success)

    def render(self) -> Image:
        """The maze from above, [size, size, 3]."""
        image = self._background.copy()
        paint_disk(image, self.place, RADIUS, AGENT, len(self.layout.kinds))
        return image

    def state(self) -> Vector:
        """The agent's place as shares of the maze's width, [2]."""
        return np.array(self.place, np.float32) / np.float32(len(self.layout.kinds))

    def close(self) -> None:
        """Nothing is held."""


def move(layout: Layout, place: Point, right: float, down: float) -> Point:
    """Move the body by less than a cell, first along x, then along y; what is in the way stops that axis alone."""
    place = Point(_slide(layout, place, right, across=False), place.y)
    return Point(place.x, _slide(layout, place, down, across=True))


def _slide(layout: Layout, place: Point, step: float, *, across: bool) -> float:
    """The new coordinate along one axis (y if ``across``)."""
    here, other = (place.y, place.x) if across else (place.x, place.y)
    there = here + step
    sides = range(math.floor(other - RADIUS), math.ceil(other + RADIUS))
    front = math.ceil(there + RADIUS) - 1 if step > 0 else math.floor(there - RADIUS)
    if any((layout.kinds[front][side] if across else layout.kinds[side][front]) == "#" for side in sides):
        there = front - RADIUS if step > 0 else front + 1 + RADIUS
    target = Point(other, there) if across else Point(there, other)
    if may_pass(layout.kinds, place.cell, target.cell):
        return there
    return math.floor(here) + 1 - SKIN if step > 0 else float(math.floor(here))


def _is_free(layout: Layout, place: Point) -> bool:
    rows = range(math.floor(place.y - RADIUS), math.ceil(place.y + RADIUS))
    columns = range(math.floor(place.x - RADIUS), math.ceil(place.x + RADIUS))
    return all(layout.kinds[row][column] != "#" for row in rows for column in columns)
