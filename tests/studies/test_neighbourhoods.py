from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import trustworthiness as reference

from ccwm.studies import neighbourhoods
from ccwm.studies.neighbourhoods import neighbours, overlap, trustworthiness, value_smoothness


def line(*places: float) -> np.ndarray:
    return np.array(places, float)[:, None]


def test_neighbours_leave_out_the_point_of_the_own_row():
    points = line(0, 1, 3, 7)
    assert neighbours(points, points, k=1)[:, 0].tolist() == [1, 0, 1, 2]
    # Row 0 asks from 0.9, nearest to point 1; row 1 from 0.9 too, where its own point 1 is out; then 6 and 0.
    assert neighbours(points, line(0.9, 0.9, 6, 0), k=1)[:, 0].tolist() == [1, 0, 3, 0]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch):
    points = np.random.default_rng(0).normal(size=(50, 3))
    whole = trustworthiness(points, points[:, :2], k=5), overlap(points, points[::-1], k=5)
    monkeypatch.setattr(neighbourhoods, "BLOCK", 7)
    assert (trustworthiness(points, points[:, :2], k=5), overlap(points, points[::-1], k=5)) == whole


def test_trustworthiness_by_hand():
    # In truth 0, 1, 10, 12, 30. The map puts 10 beside 0: nearest in the map are 0→10, 1→12, 10→0, 12→1, 30→12.
    points, drawn = line(0, 1, 10, 12, 30), line(0, 20, 0.1, 20.3, 41)
    # Ranks in truth: 10 is 2nd of 0, 12 is 3rd of 1 (after 0 and 10), 0 is 4th... of 10: 12, 1, 0 → 3rd,
    # 1 of 12: 10, 1 → 2nd, 12 of 30: 12 → 1st. Penalties with k = 1: 1 + 2 + 2 + 1 + 0 = 6.
    assert trustworthiness(points, drawn, k=1) == pytest.approx(1 - 2 * 6 / (5 * 1 * (10 - 3 - 1)))
    assert trustworthiness(points, points, k=1) == 1


def test_trustworthiness_is_scikit_learns():
    random = np.random.default_rng(1)
    points, drawn = random.normal(size=(60, 5)), random.normal(size=(60, 2))
    assert trustworthiness(points, drawn, k=7) == pytest.approx(reference(points, drawn, n_neighbors=7))


def test_overlap_by_hand():
    # Two nearest of each point: 0 → {1, 2}, 1 → {0, 2}, 2 → {1, 0}, 8 → {2, 9}, 9 → {8, 2}.
    points = line(0, 1, 2, 8, 9)
    assert overlap(points, points + 0.1, k=2) == 1
    # From 8.6: {9, 8} shares none with {1, 2}; from 1: same; from 2.1: {1, 0}: same; from 8.1: {9, 2} same;
    # from 0.2: {0, 1} shares none with {8, 2}. So (0 + 2 + 2 + 2 + 0) / (5 · 2).
    assert overlap(points, line(8.6, 1, 2.1, 8.1, 0.2), k=2) == pytest.approx(0.6)


def test_value_smoothness_by_hand():
    # Nearest: 0 ↔ 1 and 10 ↔ 11; values differ by 1 and 1; s² of (0, 1, 4, 5): mean 2.5, Σ = 6.25 + 2.25 + 2.25 + 6.25
    # = 17, over 3. S = 1 − 1 / (2 · 17 / 3) = 1 − 3 / 34.
    assert value_smoothness(line(0, 1, 10, 11), np.array([0, 1, 4, 5]), k=1) == pytest.approx(1 - 3 / 34)
    # Neighbours as far apart as any pair of all three: k = 2 of 3 points is every pair, so that S is 0.
    assert value_smoothness(line(0, 1, 5), np.array([2.0, 9.0, 4.0]), k=2) == pytest.approx(0)


def test_few_points_have_no_numbers():
    assert trustworthiness(line(0, 1), line(0, 1), k=5) is None
    assert overlap(line(0), line(0), k=5) is None
    assert value_smoothness(line(0), np.zeros(1), k=5) is None
    assert value_smoothness(line(0, 1, 2), np.ones(3), k=1) is None  # nothing to be smooth
    assert overlap(line(0, 1, 2), line(0, 1, 2), k=50) == 1  # k is cut to 2
