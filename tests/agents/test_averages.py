import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ccwm.ops.masking import masked_mean
from ccwm.ops.statistics import bootstrap_mean, bootstrap_median, interquartile_mean


def test_a_masked_mean_divides_by_what_is_kept():
    value = torch.tensor([[1.0, 2.0], [30.0, 6.0]])
    mask = torch.tensor([[True, True], [False, True]])
    assert_close(masked_mean(value, mask), torch.tensor(3.0))  # (1 + 2 + 6) / 3


def test_an_empty_mask_gives_zero_and_no_gradient():
    value = torch.tensor([1.0, 2.0], requires_grad=True)
    mean = masked_mean(value, torch.zeros(2, dtype=torch.bool))
    mean.backward()
    assert_close(mean.detach(), torch.tensor(0.0))
    assert_close(value.grad, torch.zeros(2))
    assert_close(masked_mean(torch.zeros(0), torch.zeros(0, dtype=torch.bool)), torch.tensor(0.0))


def test_a_left_out_value_gets_no_gradient():
    value = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    masked_mean(value, torch.tensor([True, False, True])).backward()
    assert_close(value.grad, torch.tensor([0.5, 0.0, 0.5]))


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
