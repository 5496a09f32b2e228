"""What follows from a maze's layout: free cells, passages, zones and geodesic distance.

A cell is one unit; x grows to the right and y downwards, so that cell (row, column) covers [column, column + 1) ×
[row, row + 1).
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from ccwm.envs.layouts import LAYOUTS

RADIUS = 0.75
"""Half the width of the agent's body, in cells."""
FINE = 4
"""Nodes of the distance grid for each cell; RADIUS is a multiple of 1 / FINE, so walls lie on nodes."""

FREE = ".sCo<>^v"
"""Letters of cells that can be entered."""


class Point(NamedTuple):
    """A place in the maze, in cells."""

    x: float
    y: float

    @property
    def cell(self) -> tuple[int, int]:
        """The cell that holds it, (row, column)."""
        return math.floor(self.y), math.floor(self.x)


def may_pass(kinds: tuple[str, ...], here: tuple[int, int], there: tuple[int, int]) -> bool:
    """Whether a move to a neighbouring cell is allowed: never out of a pit or backwards through a one-way door."""
    if kinds[there[0]][there[1]] == "#":
        return False
    kind = kinds[here[0]][here[1]]
    down, right = there[0] - here[0], there[1] - here[1]
    if kind == "o" and (down or right):
        return kinds[there[0]][there[1]] == "o"
    backwards = {">": right < 0, "<": right > 0, "v": down < 0, "^": down > 0}
    return not backwards.get(kind, False)


@dataclass(frozen=True, eq=False)
class Layout:
    """A parsed maze of n × n cells."""

    kinds: tuple[str, ...]
    cheese: Point
    zone: NDArray[np.int64]
    """[n, n] number of the cell's zone; places of one zone can all be reached from each other, −1 in walls."""
    distance: NDArray[np.float64]
    """[n · FINE + 1, n · FINE + 1] way to the cheese from each node (y, x), inf where there is none."""

    @functools.cached_property
    def farthest(self) -> float:
        """The longest finite way to the cheese."""
        return float(self.distance[np.isfinite(self.distance)].max())

    def zone_at(self, place: Point) -> int:
        """The zone of a place."""
        return int(self.zone[place.cell])

    def way_to_cheese(self, place: Point) -> float:
        """Geodesic distance from a free place: the best of the nodes around it that lie in its own zone."""
        left, top = math.floor(place.x * FINE), math.floor(place.y * FINE)
        zone = self.zone_at(place)
        ways = [math.inf]
        for row, column in itertools.product((top, top + 1), (left, left + 1)):
            if self.zone[row // FINE, column // FINE] == zone:
                node = Point(column / FINE, row / FINE)
                ways.append(float(self.distance[row, column]) + math.dist(place, node))
        return min(ways)


@functools.cache
def load_layout(name: str) -> Layout:
    """The layout of that name."""
    return parse_layout(LAYOUTS[name])


def parse_layout(text: str) -> Layout:
    """Read a square layout with an outer wall and one block of cheese."""
    kinds = tuple(text.split())
    row, column = np.mean(cells_of(kinds, "C"), axis=0)
    cheese = Point(float(column) + 0.5, float(row) + 0.5)
    return Layout(kinds, cheese, _zones(kinds), _distances(kinds, cheese))


def cells_of(kinds: tuple[str, ...], letters: str) -> list[tuple[int, int]]:
    """(row, column) of all cells of these kinds, row by row."""
    return [(row, column) for row, line in enumerate(kinds) for column, kind in enumerate(line) if kind in letters]


def _zones(kinds: tuple[str, ...]) -> NDArray[np.int64]:
    """Strongly connected cells: a passage within a zone can be retraced, one out of it cannot."""
    n = len(kinds)
    edges = [
        (row * n + column, (row + down) * n + column + right)
        for row, column in cells_of(kinds, FREE)
        for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0))
        if may_pass(kinds, (row, column), (row + down, column + right))
    ]
    _, labels = connected_components(_graph(edges, [1.0] * len(edges), n * n), connection="strong")
    return np.where(_walls(kinds), -1, labels.reshape(n, n)).astype(np.int64)


def _distances(kinds: tuple[str, ...], cheese: Point) -> NDArray[np.float64]:
    """Dijkstra over nodes 1 / FINE apart, eight ways each, on which the whole body is free of walls."""
    walls = _walls(kinds).repeat(FINE, 0).repeat(FINE, 1)
    body = round(RADIUS * FINE)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(walls, body, constant_values=True), (2 * body, 2 * body))
    free: NDArray[np.bool_] = np.logical_not(windows.any(axis=(2, 3)))
    n = len(free)
    edges, lengths = [], []
    for row, column in np.argwhere(free).tolist():
        for down, right in itertools.product((-1, 0, 1), repeat=2):
            there = row + down, column + right
            corners = free[row, there[1]] and free[there[0], column]  # no cutting of corners
            if not ((down or right) and free[there] and corners):
                continue
            if may_pass(kinds, (row // FINE, column // FINE), (there[0] // FINE, there[1] // FINE)):
                edges.append((there[0] * n + there[1], row * n + column))  # backwards: ways *to* the cheese
                lengths.append(math.hypot(down, right) / FINE)
    start = round(cheese.y * FINE) * n + round(cheese.x * FINE)
    distance: NDArray[np.float64] = dijkstra(_graph(edges, lengths, n * n), indices=[start]).reshape(n, n)
    return distance


def _walls(kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([[kind == "#" for kind in line] for line in kinds])


def _graph(edges: list[tuple[int, int]], lengths: list[float], nodes: int) -> coo_array:
    sources, targets = np.array(edges).T
    return coo_array((lengths, (sources, targets)), shape=(nodes, nodes))
