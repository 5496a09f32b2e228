from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ccwm.report.curves import over_seeds
from ccwm.report.statistics import Group, estimate, paired_difference, pool, welch


def test_interval_of_three_seeds() -> None:
    got = estimate([1.0, 2.0, 3.0])  # sd 1, t(0.975, 2) = 4.302653
    assert got.mean == 2.0
    assert got.sd == 1.0
    assert got.low == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-5)
    assert got.high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-5)


def test_one_value_has_no_interval() -> None:
    assert estimate([7.0]) == (7.0, None, None, None, 1)


def test_difference_pairs_by_key_and_leaves_out_the_unpaired() -> None:
    got = paired_difference({0: 5.0, 1: 9.0, 2: 100.0}, {1: 6.0, 0: 4.0})
    assert got is not None
    assert (got.mean, got.n) == (2.0, 2)  # (5 − 4 + 9 − 6) / 2
    assert paired_difference({0: 1.0}, {1: 1.0}) is None


def test_pooled_groups_equal_the_group_of_all_values() -> None:
    parts = [[1.0, 4.0, 4.0], [10.0], [2.0, 3.0]]
    groups = [Group(float(np.mean(p)), float(np.std(p, ddof=1)) if len(p) > 1 else None, len(p)) for p in parts]
    everything = [value for part in parts for value in part]
    got = pool(groups)
    assert got.n == 6
    assert got.mean == pytest.approx(4.0)
    assert got.sd == pytest.approx(np.std(everything, ddof=1))


def test_welch_is_scipys_on_the_values_and_one_sided() -> None:
    ours, theirs = [5.0, 6.0, 9.0, 7.0], [4.0, 4.5, 5.5]
    groups = [Group(float(np.mean(v)), float(np.std(v, ddof=1)), len(v)) for v in (ours, theirs)]
    expected = stats.ttest_ind(ours, theirs, equal_var=False, alternative="greater").pvalue
    assert welch(*groups) == pytest.approx(expected)
    assert welch(*reversed(groups)) == pytest.approx(1 - expected)


@pytest.mark.parametrize("theirs", [Group(1.0, None, 1), Group(1.0, 0.0, 3)])
def test_welch_says_nothing_without_a_spread(theirs: Group) -> None:
    assert welch(Group(2.0, 0.0, 3), theirs) is None


def frame(steps: list[int], values: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"env_steps": steps, "y": values, "own": 0.5})


def test_seeds_meet_on_the_steps_that_both_span() -> None:
    got = over_seeds([frame([0, 10, 20], [0, 10, 20]), frame([10, 15], [30, 40])], "env_steps", "y")
    assert got is not None
    assert got.x.tolist() == [10, 15]
    assert got.mean.tolist() == [20, 27.5]  # (10 + 30) / 2, (15 + 40) / 2
    assert got.band is not None
    assert got.band.tolist() == pytest.approx([math.sqrt(200), 12.5 * math.sqrt(2)])


def test_one_seed_has_its_own_spread_and_loses_its_gaps() -> None:
    got = over_seeds([frame([0, 10, 20], [1, math.nan, 3])], "env_steps", "y", spread="own")
    assert got is not None
    assert (got.x.tolist(), got.mean.tolist(), got.n) == ([0, 20], [1, 3], 1)
    assert got.band is not None
    assert got.band.tolist() == [0.5, 0.5]
