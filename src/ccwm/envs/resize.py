"""Images of any shape to squares of the wanted size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccwm.envs.world import Image


def area_resize(image: NDArray[np.floating] | Image, size: int) -> Image:
    """Average an image [h, w, 3] into [size, size, 3], each pixel over the very area that it covers."""
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
