"""Summaries of a handful of returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DRAWS = 10_000


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def interquartile_mean(values: np.ndarray) -> float:
    """Mean of the middle half, as rliable defines it: a quarter of the values is cut from each end.   [N] → scalar."""
    ordered = np.sort(values)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def bootstrap_mean(values: np.ndarray, *, seed: int) -> Interval:
    """Percentile bootstrap of the mean.   [N] → interval."""
    return _percentiles(_resamples(values, seed).mean(1))


def bootstrap_median(values: np.ndarray, *, seed: int) -> Interval:
    """Percentile bootstrap of the median.   [N] → interval."""
    return _percentiles(np.median(_resamples(values, seed), 1))


def bootstrap(values: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], *, seed: int) -> Interval:
    """Percentile bootstrap of any statistic of the mean over the first axis.   [N, …], [D, …] → [D]: interval."""
    weights = np.random.default_rng(seed).multinomial(len(values), np.full(len(values), 1 / len(values)), DRAWS)
    return _percentiles(statistic(np.tensordot(weights / len(values), values, 1)))


def _resamples(values: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(values, (DRAWS, len(values)))


def _percentiles(draws: np.ndarray) -> Interval:
    low, high = np.percentile(draws, [2.5, 97.5])
    return Interval(float(low), float(high))
