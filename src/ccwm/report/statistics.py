"""Estimates with their uncertainty: over seeds, over pairs, between groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Estimate(NamedTuple):
    """A mean of n values, their standard deviation and a 95% interval of the mean; None where n is too small."""

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


def estimate(values: Sequence[float]) -> Estimate:
    """Mean ± t(0.975, n − 1) · sd / √n of n values; a single value has no interval."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Estimate(mean, None, None, None, n)
    sd = float(np.std(values, ddof=1))
    half = float(stats.t.ppf(0.975, n - 1)) * sd / math.sqrt(n)
    return Estimate(mean, sd, mean - half, mean + half, n)


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Estimate | None:
    """Estimate of ours − theirs over the keys (seeds) that both have; None where they share none."""
    shared = sorted(ours.keys() & theirs.keys())
    return estimate([ours[key] - theirs[key] for key in shared]) if shared else None


def pool(groups: Sequence[Group]) -> Group:
    """The one group that all values together form, exactly; its sd is None if one of n > 1 is unknown."""
    n = sum(group.n for group in groups)
    mean = math.fsum(group.mean * group.n for group in groups) / n
    if n < 2 or any(group.sd is None and group.n > 1 for group in groups):
        return Group(mean, None, n)
    within = math.fsum((group.sd or 0.0) ** 2 * (group.n - 1) for group in groups)
    between = math.fsum(group.n * (group.mean - mean) ** 2 for group in groups)
    return Group(mean, math.sqrt((within + between) / (n - 1)), n)


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
