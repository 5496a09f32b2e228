from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ccwm.report.statistics import (
    average,
    brown_forsythe,
    estimate,
    hedges,
    holm,
    mean_of_means,
    over_seeds,
    paired_difference,
    paired_power,
    pairs_needed,
    performance_profile,
    probability_of_improvement,
    smallest_difference,
    stratified_iqm,
    welch,
)


def test_interval_of_three_seeds() -> None:
    got = estimate([1.0, 2.0, 3.0])  # sd 1, t(0.975, 2) = 4.302653
    assert (got.mean, got.sd) == (2.0, 1.0)
    assert got.low == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-5)
    assert got.high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-5)
    wider = estimate([1.0, 2.0, 3.0], confidence=0.98)  # t(0.99, 2) = 6.964557
    assert wider.low == pytest.approx(2 - 6.964557 / math.sqrt(3), abs=1e-5)
    assert estimate([7.0]) == (7.0, None, None, None, 1)


def test_groups_weigh_the_same_and_the_one_with_a_spread_decides() -> None:
    # 0 and 2: error 2 / 2 = 1 with one degree of freedom; 3, 3, 3: none. (1 + 3) / 2 ± 12.7062 · √1 / 2
    found = mean_of_means([estimate([0.0, 2.0]), estimate([3.0, 3.0, 3.0])])
    assert found == (2.0, None, pytest.approx(2 - 6.3531, abs=1e-4), pytest.approx(2 + 6.3531, abs=1e-4), 2)
    assert mean_of_means([estimate([1.0, 2.0, 6.0])])[2:4] == pytest.approx(estimate([1.0, 2.0, 6.0])[2:4])
    assert mean_of_means([estimate([3.0, 3.0])])[2:4] == (3.0, 3.0)
    assert mean_of_means([estimate([0.0, 2.0]), estimate([5.0])]) == (3.0, None, None, None, 1)


def test_an_average_leaves_out_what_is_missing() -> None:
    assert average([1.0, None, math.nan, 3.0]) == 2.0
    assert average([None]) is None


def test_difference_pairs_by_key_and_leaves_out_the_unpaired() -> None:
    got = paired_difference({0: 5.0, 1: 9.0, 2: 100.0}, {1: 6.0, 0: 4.0})
    assert got is not None
    assert (got.mean, got.n) == (2.0, 2)  # (5 − 4 + 9 − 6) / 2
    assert paired_difference({0: 1.0}, {1: 1.0}) is None


def test_the_interquartile_mean_is_of_all_values_together() -> None:
    assert stratified_iqm([[0.0, 10.0], [20.0, 90.0]]).iqm == 15.0  # 0 and 90 are cut, though each is of another task


def test_the_bootstrap_keeps_to_its_strata() -> None:
    apart = stratified_iqm([[0.0, 0.0], [1.0, 1.0]])
    assert (apart.iqm, apart.iqm_low, apart.iqm_high) == (0.5, 0.5, 0.5)  # drawn within each task, nothing can change
    together = stratified_iqm([[0.0, 0.0, 1.0, 1.0]])
    assert (together.iqm_low, together.iqm_high) == (0.0, 1.0)  # at most one 1 is drawn in 5 of 16 cases
    assert stratified_iqm([[3.0], [5.0]]) == (4.0, None, None)  # one seed each: nothing to resample


def test_two_values_have_the_interval_of_their_bootstrap() -> None:
    got = stratified_iqm([[0.0, 1.0]])  # means 0, ½ and 1 with ¼, ½ and ¼: both ends are beyond 2.5 %
    assert (got.iqm, got.iqm_low, got.iqm_high) == (0.5, 0.0, 1.0)


def test_holm_by_hand() -> None:
    # sorted .01 .03 .04 times 3, 2, 1 is .03 .06 .04, and no later one may be smaller
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_hedges_g_by_hand() -> None:
    ours, theirs = [5.0, 7.0, 9.0], [4.0, 5.0, 6.0]
    # variances 4 and 1, pooled (2 · 4 + 2 · 1) / 4 = 2.5, d = 2 / √2.5, corrected by 1 − 3 / (4 · 4 − 1) = 0.8
    assert hedges(ours, theirs) == pytest.approx(2 / math.sqrt(2.5) * 0.8)
    assert hedges(theirs, ours) == pytest.approx(-2 / math.sqrt(2.5) * 0.8)
    assert hedges([7.0, 7.0], [5.0, 5.0]) is None
    assert hedges([7.0], theirs) is None


def test_brown_forsythe_by_hand() -> None:
    # distances from the medians 2 and 0: (1, 0, 1) and (4, 0, 4), whose means are 2/3 and 8/3 around 5/3
    # between: 3 · (1 + 1) / 1 = 6; within: (2/3 + 32/3) / 4 = 17/6; F(1, 4) = 36 / 17
    assert brown_forsythe([1.0, 2.0, 3.0], [-4.0, 0.0, 4.0]) == pytest.approx(stats.f.sf(36 / 17, 1, 4))
    assert brown_forsythe([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]) is None
    assert brown_forsythe([1.0, 2.0], [2.0, 3.0]) is None


def test_welch_by_hand() -> None:
    ours, theirs = [3.0, 5.0, 7.0], [1.0, 3.0]
    # variances 4 and 2: 3 / √(4/3 + 2/2) and freedom (7/3)² / ((4/3)²/2 + 1²/1) = 49 / 17
    assert welch(ours, theirs) == pytest.approx(stats.t.sf(3 / math.sqrt(7 / 3), 49 / 17))
    assert welch(theirs, ours) == pytest.approx(stats.t.cdf(3 / math.sqrt(7 / 3), 49 / 17))
    assert welch([2.0, 2.0], [1.0, 1.0]) is None
    assert welch([2.0, 3.0], [1.0]) is None


def test_the_papers_p_follows_from_its_means_and_deviations() -> None:
    """Table 3's p are those of a one-sided t-test with 15 a side: ours gives the same order of magnitude."""

    def group(mean: float, sd: float) -> list[float]:
        values = np.random.default_rng(0).normal(size=15)
        return list(mean + sd * (values - values.mean()) / values.std(ddof=1))

    assert welch(group(628.07, 36.95), group(468.82, 94.73)) == pytest.approx(7.27e-6, rel=0.5)
    assert welch(group(630.40, 6.49), group(629.00, 47.01)) == pytest.approx(0.5, abs=0.1)


def frame(steps: list[int], values: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"env_steps": steps, "y": values, "own": 0.5})


def test_seeds_meet_on_the_steps_that_both_span() -> None:
    got = over_seeds([frame([0, 10, 20], [0, 10, 20]), frame([15, 10], [40, 30])], "env_steps", "y")
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
    assert over_seeds([frame([0], [math.nan])], "env_steps", "y") is None


def test_a_profile_is_the_share_above_each_threshold() -> None:
    share, low, high = performance_profile([[0.0, 0.2], [0.4, 0.6]], np.array([0.0, 0.3, 0.6]))
    assert share.tolist() == [0.75, 0.5, 0.0]  # 0 is not above 0
    assert (low[1], high[1]) == (0.5, 0.5)  # each task lies on one side, whatever is drawn
    assert (low[0], high[0]) == (0.5, 1.0)  # of the first task neither, one or both are above 0


def test_the_probability_of_improvement_by_hand() -> None:
    # first task: 3 > 1, 3 > 2, 2 > 1 and 2 = 2 of four pairs: 3.5 / 4; second: 0 of 1
    got = probability_of_improvement([[3.0, 2.0], [0.0]], [[1.0, 2.0], [5.0]])
    assert got.improvement == (3.5 / 4 + 0) / 2
    assert got.improvement_low is not None
    assert got.improvement_high is not None
    assert 0.25 <= got.improvement_low < got.improvement < got.improvement_high == 0.5
    assert probability_of_improvement([[1.0]], [[0.0]]) == (1.0, None, None)


@pytest.mark.parametrize(("difference", "pairs"), [(0.5, 34), (1.0, 10), (-1.0, 10)])
def test_pairs_for_a_power_of_80_percent_are_those_of_the_tables(difference: float, pairs: int) -> None:
    assert pairs_needed(1.0, difference) == pairs  # Cohen's d_z of 0.5 and 1 in any table of the paired t-test
    assert pairs_needed(100.0, 100 * difference) == pairs


def test_power_has_its_ends() -> None:
    assert pairs_needed(0.0, 1.0) == 2  # no spread at all
    assert pairs_needed(1000.0, 1.0) is None
    assert pairs_needed(1.0, 1000.0) == 2
    assert paired_power(1.0, 0.0, np.array([7.0]))[0] == pytest.approx(0.05)  # no difference: the level of the test
    found = smallest_difference(2.0, 10)
    assert paired_power(2.0, found, np.array([10.0]))[0] == pytest.approx(0.8)
    assert pairs_needed(2.0, found) == 10
