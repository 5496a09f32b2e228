"""What several cells say together: estimates over seeds, comparisons of groups, and curves over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from ccwm.ops.statistics import interquartile_mean, percentile_interval, resamples

Floats = NDArray[np.float64]
Record = TypeVar("Record", bound=Any)
"""A NamedTuple of numbers."""


class Estimate(NamedTuple):
    """A mean of n values, their standard deviation and an interval of the mean; None where n is too small."""

    mean: float
    sd: float | None
    low: float | None
    high: float | None
    n: int


class Middle(NamedTuple):
    """An interquartile mean and its 95% bootstrap interval; None where no stratum has two values to resample."""

    iqm: float
    low: float | None
    high: float | None


class Curve(NamedTuple):
    """Mean of n seeds at P points; the band is ± one standard deviation, None where there is none."""

    x: Floats  # [P]
    mean: Floats  # [P]
    band: Floats | None  # [P]
    n: int


def average(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are there; None where there is none."""
    there = [float(value) for value in values if value is not None and not math.isnan(value)]
    return math.fsum(there) / len(there) if there else None


def averaged(records: Sequence[Record]) -> Record:
    """One record of a study's metrics with the mean of each field over several."""
    first = records[0]
    mean: Record = first._replace(**{name: average(getattr(of, name) for of in records) for name in first._fields})
    return mean


def estimate(values: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """Mean ± t((1 + confidence) / 2, n − 1) · sd / √n of n values; a single value has no interval."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Estimate(mean, None, None, None, n)
    sd = float(np.std(values, ddof=1))
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * sd / math.sqrt(n)
    return Estimate(mean, sd, mean - half, mean + half, n)


def paired_difference(
    ours: Mapping[int, float], theirs: Mapping[int, float], *, confidence: float = 0.95
) -> Estimate | None:
    """Estimate of ours − theirs over the keys (seeds) that both have; None where they share none."""
    shared = sorted(ours.keys() & theirs.keys())
    return estimate([ours[key] - theirs[key] for key in shared], confidence=confidence) if shared else None


def stratified_iqm(strata: Sequence[Sequence[float]], *, seed: int = 0) -> Middle:
    """Interquartile mean of all values together, with a stratified bootstrap interval, as rliable defines both.

    A stratum holds one task's runs (seeds). A resample draws each stratum's values anew from that stratum.
    """
    point = float(interquartile_mean(np.concatenate(strata)))
    if all(len(of) < 2 for of in strata):
        return Middle(point, None, None)
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([resamples(np.asarray(of, float), rng) for of in strata], 1)  # [DRAWS, N]
    return Middle(point, *percentile_interval(interquartile_mean(drawn)))


def hedges(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Hedges' g: (ours − theirs) / pooled sd, times 1 − 3 / (4 · df − 1) for small groups; None without a spread."""
    freedom = len(ours) + len(theirs) - 2
    if min(len(ours), len(theirs)) < 2:
        return None
    squares = sum((len(of) - 1) * float(np.var(of, ddof=1)) for of in (ours, theirs))
    gap = float(np.mean(ours) - np.mean(theirs))
    return gap / math.sqrt(squares / freedom) * (1 - 3 / (4 * freedom - 1)) if squares else None


def welch(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """One-sided p of Welch's test that ours is no greater than theirs; None without a spread to judge by."""
    if min(len(ours), len(theirs)) < 2 or len({*ours}) == len({*theirs}) == 1:
        return None
    return float(stats.ttest_ind(ours, theirs, equal_var=False, alternative="greater").pvalue)


def brown_forsythe(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Two-sided p of the Brown-Forsythe test (Levene's, around medians) that both spread alike; None without spread."""
    if min(len(ours), len(theirs)) < 3 or len({*ours}) == len({*theirs}) == 1:
        return None
    p = float(stats.levene(ours, theirs, center="median").pvalue)
    return p if math.isfinite(p) else None


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order given: the i-th smallest of m is max over j ≤ i of (m − j + 1) p_j."""
    order = np.argsort(p_values)
    scaled = (len(p_values) - np.arange(len(p_values))) * np.asarray(p_values, float)[order]
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0) if len(scaled) else scaled
    return [float(p) for p in corrected]


def track(frame: pd.DataFrame, x: str, y: str) -> tuple[Floats, Floats]:
    """The points of one seed where both are finite, sorted by x."""
    points = frame[[x, y]].dropna().sort_values(x, kind="stable").to_numpy(np.float64)
    return points[:, 0], points[:, 1]


def over_seeds(frames: Iterable[pd.DataFrame], x: str, y: str, *, spread: str | None = None) -> Curve | None:
    """Mean of y over the seeds' frames, interpolated at every x that all of them span.

    The band is the standard deviation over seeds; one seed alone has its own column ``spread`` instead, if named.
    """
    used = [frame for frame in frames if y in frame and frame[y].notna().any()]
    if not used:
        return None
    tracks = [track(frame, x, y) for frame in used]
    if len(tracks) == 1:
        at, mean = tracks[0]
        return Curve(at, mean, None if spread is None else np.interp(at, *track(used[0], x, spread)), 1)
    first, last = max(at[0] for at, _ in tracks), min(at[-1] for at, _ in tracks)
    grid = np.unique(np.concatenate([at for at, _ in tracks]))
    grid = grid[(grid >= first) & (grid <= last)]
    if not len(grid):
        return None
    values = np.stack([np.interp(grid, at, value) for at, value in tracks])  # [seeds, P]
    return Curve(grid, values.mean(0), values.std(0, ddof=1), len(tracks))
