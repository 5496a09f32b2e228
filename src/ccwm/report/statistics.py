"""What several cells say together: estimates over seeds, comparisons of groups, and curves over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from ccwm.cells import Cell
from ccwm.ops.statistics import interquartile_mean, percentile_interval, resamples

Floats = NDArray[np.float64]
Frames = Mapping[str, Mapping[Cell, pd.DataFrame]]
"""The tables of every variant's cells."""


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
    iqm_low: float | None
    iqm_high: float | None


class Improvement(NamedTuple):
    """A probability of improvement and its 95% bootstrap interval; None where there is nothing to resample."""

    improvement: float
    improvement_low: float | None
    improvement_high: float | None


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


def estimate(values: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """Mean ± t((1 + confidence) / 2, n − 1) · sd / √n of n values; a single value has no interval."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Estimate(mean, None, None, None, n)
    sd = float(np.std(values, ddof=1))
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * sd / math.sqrt(n)
    return Estimate(mean, sd, mean - half, mean + half, n)


def mean_of_means(groups: Sequence[Estimate], *, confidence: float = 0.95) -> Estimate:
    """The mean over groups that all weigh the same, whatever their n; its interval is that of Welch and Satterthwaite.

    Groups of one value leave no interval. ``n`` is that of the smallest group.
    """
    mean, n = math.fsum(of.mean for of in groups) / len(groups), min(of.n for of in groups)
    if n < 2:
        return Estimate(mean, None, None, None, n)
    errors = [(of.sd or 0.0) ** 2 / of.n for of in groups]
    squared = math.fsum(error**2 / (of.n - 1) for error, of in zip(errors, groups, strict=True))
    freedom = math.fsum(errors) ** 2 / squared if squared else 1.0  # without a spread it does not matter
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(math.fsum(errors)) / len(groups)
    return Estimate(mean, None, mean - half, mean + half, n)


def paired_difference(
    ours: Mapping[Any, float], theirs: Mapping[Any, float], *, confidence: float = 0.95
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


def performance_profile(
    strata: Sequence[Sequence[float]], at: Floats, *, seed: int = 0
) -> tuple[Floats, Floats, Floats]:
    """Share of all runs above each threshold, and its pointwise 95% stratified bootstrap interval.   → [P] each."""
    rng, together = np.random.default_rng(seed), np.concatenate(strata)
    drawn = np.concatenate([resamples(np.asarray(of, float), rng) for of in strata], 1)  # [DRAWS, N]
    ends = [percentile_interval((drawn > threshold).mean(1)) for threshold in at]
    share = np.array([(together > threshold).mean() for threshold in at])
    return share, np.array([of.low for of in ends]), np.array([of.high for of in ends])


def probability_of_improvement(
    ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], *, seed: int = 0
) -> Improvement:
    """P(x > y) + ½ P(x = y) for runs x of ours and y of theirs on one task, averaged over tasks, as rliable defines it.

    A stratum is a task, the same in both; a resample draws each side's runs anew within each task.
    """

    def share(x: Floats, y: Floats) -> Floats:
        pairs = np.sign(x[..., :, None] - y[..., None, :])
        return np.asarray((pairs.mean((-2, -1)) + 1) / 2)

    rng, tasks = np.random.default_rng(seed), [*zip(ours, theirs, strict=True)]
    point = float(np.mean([share(np.asarray(x, float), np.asarray(y, float)) for x, y in tasks]))
    if all(len(of) < 2 for pair in tasks for of in pair):
        return Improvement(point, None, None)
    drawn = [share(*(resamples(np.asarray(of, float), rng) for of in pair)) for pair in tasks]  # [DRAWS] each
    return Improvement(point, *percentile_interval(np.mean(drawn, 0)))


def paired_power(sd: float, difference: float, n: Floats, *, alpha: float = 0.05) -> Floats:
    """Power of the two-sided paired t-test of n differences with mean ``difference`` and standard deviation ``sd``.

    1 − F(t*) + F(−t*), with F the noncentral t of n − 1 degrees of freedom around √n · difference / sd.   [N] → [N].
    """
    edge, centre = stats.t.ppf(1 - alpha / 2, n - 1), np.sqrt(n) * abs(difference) / sd
    far = np.nan_to_num(stats.nct.cdf(-edge, n - 1, centre))  # scipy gives NaN where there is next to nothing
    return np.asarray(stats.nct.sf(edge, n - 1, centre) + far)


def pairs_needed(sd: float, difference: float, *, power: float = 0.8, most: int = 1000) -> int | None:
    """The fewest pairs that find a difference with this power; None where ``most`` do not."""
    if sd == 0:
        return 2
    n = np.arange(2, most + 1, dtype=float)
    enough = paired_power(sd, difference, n) >= power
    return int(n[enough.argmax()]) if enough.any() else None


def smallest_difference(sd: float, n: int, *, power: float = 0.8) -> float:
    """The difference that n pairs find with this power."""
    low, high = 0.0, 100.0 * sd
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if paired_power(sd, middle, np.array([float(n)]))[0] >= power else (middle, high)
    return high


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


def curves_of(found: Frames, x: str, y: str, *, spread: str | None = None) -> dict[str, Curve]:
    """The mean curve of every variant that has one, by what was read for its cells."""
    curves = {variant: over_seeds(of.values(), x, y, spread=spread) for variant, of in found.items()}
    return {variant: curve for variant, curve in curves.items() if curve is not None}
