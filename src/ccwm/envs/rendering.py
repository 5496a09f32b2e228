"""Images made by numpy alone: a maze from above, and any picture averaged to the size that the agent sees."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ccwm.envs.geometry import Layout, Point
from ccwm.envs.world import Image

FLOOR, WALL, PIT = (236, 232, 222), (62, 68, 86), (24, 14, 30)
DOOR_IN, DOOR_OUT = (250, 190, 110), (205, 95, 30)
AGENT, CHEESE = (40, 110, 225), (250, 205, 30)
SHARP = 16
"""Samples of the background for each cell and axis, before they are averaged into pixels."""


def render_background(layout: Layout, size: int) -> Image:
    """Walls, floor, pit and doors, [size, size, 3]; a door is light where it is entered and dark where it is left."""
    n = len(layout.kinds)
    fine = np.empty((n * SHARP, n * SHARP, 3))
    for row, line in enumerate(layout.kinds):
        for column, kind in enumerate(line):
            fine[row * SHARP : (row + 1) * SHARP, column * SHARP : (column + 1) * SHARP] = _render_cell(kind)
    return area_resize(fine, size)


def paint_disk(image: Image, place: Point, radius: float, colour: tuple[int, int, int], cells: int) -> None:
    """Paint an anti-aliased disk, in units of cells, into the image; motion below a pixel shows at its rim."""
    size = len(image)
    scale = size / cells
    x, y, r = place.x * scale, place.y * scale, radius * scale
    left, right = max(0, math.floor(x - r - 1)), min(size, math.ceil(x + r + 1))
    top, bottom = max(0, math.floor(y - r - 1)), min(size, math.ceil(y + r + 1))
    distance = np.hypot(np.arange(left, right) + 0.5 - x, np.arange(top, bottom)[:, None] + 0.5 - y)
    cover = np.minimum(np.maximum(r - distance + 0.5, 0), 1)[..., None]
    under = image[top:bottom, left:right]
    image[top:bottom, left:right] = np.rint(under * (1 - cover) + np.array(colour) * cover)


def _render_cell(kind: str) -> NDArray[np.float64]:
    if kind in "<>^v":
        half = SHARP // 2
        door = np.array([DOOR_IN] * half + [DOOR_OUT] * half, float)[None].repeat(SHARP, 0)
        return np.rot90(door, ">^<v".index(kind))
    colour = {"#": WALL, "o": PIT}.get(kind, FLOOR)
    return np.broadcast_to(np.array(colour, float), (SHARP, SHARP, 3))


def area_resize(image: NDArray[np.floating] | Image, size: int) -> Image:
    """Average an image [h, w, 3] into [size, size, 3], each pixel over the area that it covers."""
    rows = _average(image.astype(np.float64), size)
    both = _average(rows.swapaxes(0, 1), size).swapaxes(0, 1)
    return np.rint(both).astype(np.uint8)


def _average(image: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Along the first axis, from differences of the running sum: no BLAS, so no bit depends on its threads."""
    old = len(image)
    edges = np.arange(size + 1) * old / size
    whole = np.floor(edges).astype(int)
    nothing = np.zeros_like(image[:1])
    sums = np.concatenate([nothing, np.cumsum(image, 0)])
    rest = np.concatenate([image, nothing])[whole] * (edges - whole)[:, None, None]
    averages: NDArray[np.float64] = np.diff(sums[whole] + rest, axis=0) * size / old
    return averages
