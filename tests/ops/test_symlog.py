import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from ccwm.ops.symlog import symexp, symexp_bins, symlog

few = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def number(value):
    return torch.tensor(value, dtype=torch.float64)


def test_symlog_by_hand():
    # log(1 + 0) = 0; log(1 + (e − 1)) = 1; −log(1 + 3) = −2 log 2
    assert_close(symlog(number([0.0, math.e - 1, -3.0])), number([0.0, 1.0, -2 * math.log(2)]))


def test_symexp_by_hand():
    # e⁰ − 1 = 0; e^(2 log 2) − 1 = 3; −(e¹ − 1)
    assert_close(symexp(number([0.0, 2 * math.log(2), -1.0])), number([0.0, 3.0, 1 - math.e]))


@few
@given(st.floats(-1e6, 1e6))
def test_symexp_is_the_inverse_of_symlog(value):
    assert_close(symexp(symlog(number(value))), number(value), rtol=1e-9, atol=1e-12)


@few
@given(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4))
def test_symlog_is_odd_keeps_the_order_and_squashes(one, other):
    low, high = sorted((one, other))
    assert symlog(number(low)) <= symlog(number(high))
    assert_close(symlog(number(-one)), -symlog(number(one)))
    assert symlog(number(one)).abs() <= abs(one)


@pytest.mark.parametrize("place", [-1e-9, 0.0, 1e-9])
def test_around_zero_symlog_is_the_identity(place):
    assert_close(symlog(number(place)), number(place), rtol=1e-6, atol=0)


def test_bins_are_evenly_spaced_on_the_scale_of_symlog():
    # Five bins between ±2 log 2: −2 log 2, −log 2, 0, log 2, 2 log 2, whose symexp are −3, −1, 0, 1, 3.
    assert_close(symexp_bins(5, 2 * math.log(2)), torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0]))
