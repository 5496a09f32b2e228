import numpy as np
import pytest

from ccwm.ops.statistics import bootstrap, bootstrap_mean, bootstrap_median, interquartile_mean


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([5.0], 5.0),
        ([1.0, 2.0, 9.0], 4.0),  # a quarter of three is none
        ([100.0, 2.0, 4.0, -50.0], 3.0),  # one from each end
        ([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1000.0], 5.5),  # two from each end: 4, 5, 6, 7
    ],
)
def test_the_interquartile_mean_cuts_a_quarter_from_each_end(values, wanted):
    assert interquartile_mean(np.array(values)) == wanted


def test_a_bootstrap_of_equal_values_has_no_width():
    assert bootstrap_mean(np.full(5, 3.0), seed=0) == (3.0, 3.0)


def test_a_bootstrap_covers_what_the_normal_theory_says():
    # 100 values of mean 0 and spread 1: the mean's 95 % interval is ± 1.96 / √100.
    low, high = bootstrap_mean(np.tile([-1.0, 1.0], 50), seed=0)
    assert low == pytest.approx(-0.196, abs=0.02)
    assert high == pytest.approx(0.196, abs=0.02)


def test_a_bootstrap_is_a_function_of_its_seed():
    values = np.arange(7.0)
    assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1)
    draws = {bootstrap_mean(values**2, seed=seed) for seed in range(4)}
    assert len(draws) > 1


def test_a_bootstrapped_median_is_one_of_the_values():
    assert bootstrap_median(np.array([0.0, 0.0, 0.0, 9.0, 9.0]), seed=0) == (0.0, 9.0)
    # To move the median, one of ten values would have to be half of ten draws.
    assert bootstrap_median(np.array([*[2.0] * 9, 50.0]), seed=0) == (2.0, 2.0)


def test_a_statistic_of_means_is_resampled_by_rows():
    # Rows stay together: each second number is twice the first, so that the ratio of their means is 2 in every draw.
    rows = np.array([[1.0, 2.0], [5.0, 10.0], [9.0, 18.0]])
    assert bootstrap(rows, lambda mean: mean[:, 1] / mean[:, 0], seed=0) == pytest.approx((2.0, 2.0))
    low, high = bootstrap(np.tile([-1.0, 1.0], 50), lambda mean: mean, seed=0)
    assert (low, high) == pytest.approx((-0.196, 0.196), abs=0.02)  # ± 1.96 / √100, as above
