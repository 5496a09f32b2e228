"""Summaries of a handful of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DRAWS = 10_000
"""Resamples of a bootstrap."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def sample_sd(values: np.ndarray) -> float:
    """Standard deviation with n − 1 in its denominator; 0 for a single value.   [N] → scalar."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Mean of the middle half, as rliable defines it: a quarter is cut from each end.   [..., N] → [...]."""
    cut = values.shape[-1] // 4
    return np.asarray(np.sort(values, -1)[..., cut : values.shape[-1] - cut].mean(-1))


def bootstrap_mean(values: np.ndarray, *, seed: int) -> Interval:
    """Percentile bootstrap of the mean.   [N] → interval."""
    return percentile_interval(resamples(values, np.random.default_rng(seed)).mean(1))


def bootstrap_median(values: np.ndarray, *, seed: int) -> Interval:
    """Percentile bootstrap of the median.   [N] → interval."""
    return percentile_interval(np.median(resamples(values, np.random.default_rng(seed)), 1))


def bootstrap(values: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], *, seed: int) -> Interval:
    """Percentile bootstrap of any statistic of the mean over the first axis.   [N, …], [D, …] → [D]: interval."""
    weights = np.random.default_rng(seed).multinomial(len(values), np.full(len(values), 1 / len(values)), DRAWS)
    return percentile_interval(statistic(np.tensordot(weights / len(values), values, 1)))


def resamples(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws of as many values, with replacement.   [N] → [DRAWS, N]."""
    return rng.choice(values, (DRAWS, len(values)))


def percentile_interval(draws: np.ndarray) -> Interval:
    """From the 2.5th to the 97.5th percentile.   [DRAWS] → interval."""
    low, high = np.percentile(draws, [2.5, 97.5])
    return Interval(float(low), float(high))
