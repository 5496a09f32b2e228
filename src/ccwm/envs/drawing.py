"""The maze from above, drawn with numpy alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ccwm.envs.geometry import Layout, Point
from ccwm.envs.resize import area_resize
from ccwm.envs.world import Image

FLOOR, WALL, PIT = (236, 232, 222), (62, 68, 86), (24, 14, 30)
DOOR_IN, DOOR_OUT = (250, 190, 110), (205, 95, 30)
AGENT, CHEESE = (40, 110, 225), (250, 205, 30)
SHARP = 16
"""Samples of the background for each cell and axis, before they are averaged into pixels."""


def draw_background(layout: Layout, size: int) -> Image:
    """Walls, floor, pit and doors, [size, size, 3]; a door is light where it is entered and dark where it is left."""
    n = len(layout.kinds)
    fine = np.empty((n * SHARP, n * SHARP, 3))
    for row, line in enumerate(layout.kinds):
        for column, kind in enumerate(line):
            fine[row * SHARP : (row + 1) * SHARP, column * SHARP : (column + 1) * SHARP] = _draw_cell(kind)
    return area_resize(fine, size)


def draw_disk(image: Image, place: Point, radius: float, colour: tuple[int, int, int], cells: int) -> None:
    """Paint an anti-aliased disk, in units of cells, into the image; motion below a pixel shows at its rim."""
    size = len(image)
    scale = size / cells
    x, y, r = place.x * scale, place.y * scale, radius * scale
    left, right = max(0, math.floor(x - r - 1)), min(size, math.ceil(x + r + 1))
    top, bottom = max(0, math.floor(y - r - 1)), min(size, math.ceil(y + r + 1))
    away = np.hypot(np.arange(left, right) + 0.5 - x, np.arange(top, bottom)[:, None] + 0.5 - y)
    cover = np.minimum(np.maximum(r - away + 0.5, 0), 1)[..., None]
    under = image[top:bottom, left:right]
    image[top:bottom, left:right] = np.rint(under * (1 - cover) + np.array(colour) * cover)


def _draw_cell(kind: str) -> NDArray[np.float64]:
    if kind in "<>^v":
        half = SHARP // 2
        door = np.array([DOOR_IN] * half + [DOOR_OUT] * half, float)[None].repeat(SHARP, 0)
        return np.rot90(door, ">^<v".index(kind))
    colour = {"#": WALL, "o": PIT}.get(kind, FLOOR)
    return np.broadcast_to(np.array(colour, float), (SHARP, SHARP, 3))
