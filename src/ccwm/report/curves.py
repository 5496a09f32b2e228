"""Curves of several seeds on one axis: their mean and a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ccwm.report.results import Results

Floats = NDArray[np.float64]
VariantFrames = dict[str, list[pd.DataFrame]]


class Curve(NamedTuple):
    """Mean of n seeds at P points; the band is ± one standard deviation, None where there is none."""

    x: Floats  # [P]
    mean: Floats  # [P]
    band: Floats | None  # [P]
    n: int


def over_seeds(frames: Sequence[pd.DataFrame], x: str, y: str, *, spread: str | None = None) -> Curve | None:
    """Mean of y over the seeds' frames, interpolated at every x that all of them span.

    The band is the standard deviation over seeds; one seed alone has its own column ``spread`` instead, if named.
    """
    used = [frame for frame in frames if y in frame and len(track(frame, x, y)[0])]
    tracks = [track(frame, x, y) for frame in used]
    if not tracks:
        return None
    if len(tracks) == 1:
        own = track(used[0], x, spread) if spread is not None else None
        return Curve(*tracks[0], np.interp(tracks[0][0], *own) if own is not None and len(own[0]) else None, 1)
    first, last = max(at[0] for at, _ in tracks), min(at[-1] for at, _ in tracks)
    grid = np.unique(np.concatenate([at for at, _ in tracks]))
    grid = grid[(grid >= first) & (grid <= last)]
    if not len(grid):
        return None
    values = np.stack([np.interp(grid, at, value) for at, value in tracks])  # [seeds, P]
    return Curve(grid, values.mean(0), values.std(0, ddof=1), len(tracks))


def variant_frames(results: Results, stage: str, task: str, file: str, columns: list[str]) -> VariantFrames:
    """A stage's CSV files of one task, by variant, one for each seed that has it."""
    return {
        variant: [
            frame
            for cell in results.cells(stage, task=task, variant=variant)
            if (frame := cell.table(file, columns)) is not None
        ]
        for variant in results.variants
    }


def variant_curves(frames: VariantFrames, x: str, y: str, *, spread: str | None = None) -> dict[str, Curve]:
    """The curve of every variant whose frames have one."""
    curves = {variant: over_seeds(of, x, y, spread=spread) for variant, of in frames.items()}
    return {variant: curve for variant, curve in curves.items() if curve is not None}


def track(frame: pd.DataFrame, x: str, y: str) -> tuple[Floats, Floats]:
    """The points of one seed where both are finite, sorted by x."""
    points = frame[[x, y]].to_numpy(np.float64)
    points = points[np.isfinite(points).all(1)]
    points = points[np.argsort(points[:, 0], kind="stable")]
    return points[:, 0], points[:, 1]


def still_better(frames: Sequence[pd.DataFrame], column: str, longest: int) -> Floats:
    """Share of all episodes whose horizon is at least 0, 1, … steps.   → [longest + 1]."""
    steps = np.concatenate([frame[column].to_numpy(np.float64) for frame in frames])
    return np.asarray((steps[:, None] >= np.arange(longest + 1)).mean(0))
