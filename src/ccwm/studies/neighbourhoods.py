"""What nearest neighbours say of a map or a representation; distances are Euclidean, k is cut where points are few."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist

BLOCK = 128
"""Rows whose distances are held at a time, so that ten thousand points need no matrix of a hundred million."""


def neighbours(points: np.ndarray, queries: np.ndarray, *, k: int) -> np.ndarray:
    """The k points nearest to each query, never the point of the query's own row.   [n, D] each → int [n, k], k < n."""
    found = [np.argpartition(distance, k - 1, axis=1)[:, :k] for _, distance in _blocks(points, queries)]
    return np.concatenate(found)


def trustworthiness(points: np.ndarray, drawn: np.ndarray, *, k: int) -> float | None:
    """Whether neighbours in the map are neighbours in truth: 1 where all are (Venna & Kaski 2001).

    T = 1 − 2 / (n k (2n − 3k − 1)) · Σ_i Σ_{j ∈ N_k(i) of the map} max(0, r(i, j) − k), where j is the r(i, j)-th
    nearest of i in truth.   [n, D], [n, 2] → scalar; k is cut below n / 2, and None stands for fewer than three points.
    """
    n = len(points)
    k = min(k, (n - 1) // 2)
    if k < 1:
        return None
    near = neighbours(drawn, drawn, k=k)
    penalty = 0
    for rows, distance in _blocks(points, points):
        reached = np.take_along_axis(distance, near[rows], 1)  # [block, k]
        rank = 1 + (distance[:, None, :] < reached[:, :, None]).sum(-1)
        penalty += int(np.maximum(rank - k, 0).sum())
    return 1 - 2 * penalty / (n * k * (2 * n - 3 * k - 1))


def overlap(points: np.ndarray, others: np.ndarray, *, k: int) -> float | None:
    """Whether row i of ``others`` lies where row i of ``points`` does: the share of neighbours that both have.

    O = mean_i |N_k(p_i) ∩ N_k(o_i)| / k, both among all points but p_i.   [n, D] each → scalar, k / (n − 1) by chance;
    None for fewer than two points.
    """
    k = min(k, len(points) - 1)
    if k < 1:
        return None
    own, other = neighbours(points, points, k=k), neighbours(points, others, k=k)
    return float((own[:, :, None] == other[:, None, :]).any(-1).mean())


def value_smoothness(points: np.ndarray, value: np.ndarray, *, k: int) -> float | None:
    """Whether neighbours are worth the same: 1 where they are, 0 where they differ as any two points do.

    S = 1 − mean_i mean_{j ∈ N_k(i)} (V_i − V_j)² / (2 s²), with s² the sample variance of V, so that 2 s² is the mean
    squared difference of all pairs (1 − S is Geary's C).   [n, D], [n] → scalar; None where all are worth the same.
    """
    k = min(k, len(points) - 1)
    if k < 1 or np.ptp(value) == 0:
        return None
    value = value.astype(np.float64)
    near = neighbours(points, points, k=k)
    return float(1 - ((value[:, None] - value[near]) ** 2).mean() / (2 * value.var(ddof=1)))


def _blocks(points: np.ndarray, queries: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Distances of the queries to all points, some rows at a time; that of a row to itself is infinite."""
    points, queries = points.astype(np.float64), queries.astype(np.float64)
    for first in range(0, len(queries), BLOCK):
        rows = slice(first, min(first + BLOCK, len(queries)))
        distance = cdist(queries[rows], points)
        distance[np.arange(len(distance)), np.arange(rows.start, rows.stop)] = np.inf
        yield rows, distance
