"""Estimates with their uncertainty: over seeds, over pairs, between groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

DRAWS = 10_000
"""Resamples of a bootstrap."""


class Estimate(NamedTuple):
    """A mean of n values, their standard deviation and an interval of the mean; None where n is too small."""

    mean: float
    sd: float | None
    low: float | None
    high: float | None
    n: int


class Group(NamedTuple):
    """n values known by their mean and standard deviation (n − 1 in its denominator)."""

    mean: float
    sd: float | None
    n: int


class Middle(NamedTuple):
    """An interquartile mean and its 95% bootstrap interval; None where no stratum has two values to resample."""

    iqm: float
    low: float | None
    high: float | None


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


def interquartile_mean(strata: Sequence[Sequence[float]], *, seed: int = 0) -> Middle:
    """Interquartile mean of all values together, with a stratified bootstrap interval, as rliable defines both.

    A stratum holds one task's runs (seeds). A quarter of all values, rounded down, is cut from each end. A resample
    draws each stratum's values anew from that stratum; the interval is from the 2.5th to the 97.5th percentile.
    """
    draw = np.random.default_rng(seed)
    resampled = np.concatenate([draw.choice(np.asarray(of), (DRAWS, len(of))) for of in strata], 1)  # [DRAWS, N]
    point = float(_middle(np.concatenate(strata)[None])[0])
    if all(len(of) < 2 for of in strata):
        return Middle(point, None, None)
    low, high = np.percentile(_middle(resampled), [2.5, 97.5])
    return Middle(point, float(low), float(high))


def _middle(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the middle half of each row.   [R, N] → [R]."""
    cut = values.shape[1] // 4
    return np.asarray(np.sort(values, 1)[:, cut : values.shape[1] - cut].mean(1))


def hedges(ours: Group, theirs: Group) -> float | None:
    """Hedges' g: (ours − theirs) / pooled sd, times 1 − 3 / (4 · df − 1) for small groups; None without a spread."""
    freedom = ours.n + theirs.n - 2
    if ours.sd is None or theirs.sd is None or min(ours.n, theirs.n) < 2:
        return None
    pooled = math.sqrt(((ours.n - 1) * ours.sd**2 + (theirs.n - 1) * theirs.sd**2) / freedom)
    return (ours.mean - theirs.mean) / pooled * (1 - 3 / (4 * freedom - 1)) if pooled else None


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order given: the i-th smallest of m is max over j ≤ i of (m − j + 1) p_j."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min((len(p_values) - rank) * p_values[index], 1.0))
        corrected[index] = highest
    return corrected


def brown_forsythe(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Two-sided p of the Brown-Forsythe test (Levene's, around medians) that both spread alike; None without spread."""
    if min(len(ours), len(theirs)) < 3 or len({*ours}) == len({*theirs}) == 1:
        return None
    p = float(stats.levene(ours, theirs, center="median").pvalue)
    return p if math.isfinite(p) else None


def group(values: Sequence[float]) -> Group:
    """The group that the values form."""
    mean, sd, _, _, n = estimate(values)
    return Group(mean, sd, n)


def welch(ours: Group, theirs: Group) -> float | None:
    """One-sided p of Welch's test that ours is no greater than theirs; None without a spread to judge by."""
    if not ours.sd and not theirs.sd:
        return None
    if ours.sd is None or theirs.sd is None or min(ours.n, theirs.n) < 2:
        return None
    test = stats.ttest_ind_from_stats(
        ours.mean, ours.sd, ours.n, theirs.mean, theirs.sd, theirs.n, equal_var=False, alternative="greater"
    )
    return float(test.pvalue)
