import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from ccwm.ops.gaussian import kl_divergence, log_prob, tanh_log_prob, unit_nll, wasserstein2
from ccwm.structs import Gaussian


def gaussian(mean, std):
    return Gaussian(torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64))


def number(value):
    return torch.tensor(value, dtype=torch.float64)


def test_kl_of_one_dimension():
    # log(2/1) + (1 + (3 − 1)²) / (2·4) − ½ = log 2 + 5/8 − 1/2
    assert_close(kl_divergence(gaussian([3.0], [1.0]), gaussian([1.0], [2.0])), number(math.log(2) + 0.125))


def test_kl_is_not_symmetric():
    # log(1/2) + (4 + (1 − 3)²) / 2 − ½ = −log 2 + 3.5
    assert_close(kl_divergence(gaussian([1.0], [2.0]), gaussian([3.0], [1.0])), number(3.5 - math.log(2)))


def test_kl_sums_over_dimensions_and_keeps_the_others():
    # Row 0: (log 2 + 1/8) + ½·1² from equal spreads a distance 1 apart. Row 1: the same Gaussian twice.
    p = gaussian([[3.0, 0.0], [5.0, -2.0]], [[1.0, 1.0], [0.3, 4.0]])
    q = gaussian([[1.0, 1.0], [5.0, -2.0]], [[2.0, 1.0], [0.3, 4.0]])
    assert_close(kl_divergence(p, q), number([math.log(2) + 0.625, 0.0]))


def test_kl_agrees_with_torch():
    p, q = gaussian([0.3, -1.2], [0.5, 2.0]), gaussian([1.0, 0.1], [0.7, 1.1])
    theirs = torch.distributions.kl_divergence(torch.distributions.Normal(*p), torch.distributions.Normal(*q))
    assert_close(kl_divergence(p, q), theirs.sum(-1))


def test_wasserstein_is_the_papers_form_without_a_root():
    # (1 − 4)² + (0 − 4)² + (2 − 1)² + (5 − 3)² = 9 + 16 + 1 + 4
    assert_close(wasserstein2(gaussian([1.0, 0.0], [2.0, 5.0]), gaussian([4.0, 4.0], [1.0, 3.0])), number(30.0))


def test_log_prob_is_the_density_itself():
    # Two steps of spread 2 off, and on the mean with spread 1: −½·(4/2)² − log 2 − ½ log 2π, then −½ log 2π.
    got = log_prob(gaussian([1.0, 7.0], [2.0, 1.0]), number([5.0, 7.0]))
    assert_close(got, number(-2 - math.log(2) - math.log(2 * math.pi)))


def test_unit_nll_is_half_the_square_of_each_entry():
    assert_close(unit_nll(number([1.0, 2.0]), number([4.0, 0.0])), number([4.5, 2.0]))


def test_tanh_log_prob_adds_the_change_of_volume():
    # At raw = 0 tanh has slope 1; at raw = 1 its slope is 1 − tanh²(1).
    p = gaussian([0.0, 0.0], [1.0, 1.0])
    plain = log_prob(p, number([0.0, 1.0]))
    assert_close(tanh_log_prob(p, number([0.0, 1.0])), plain - math.log(1 - math.tanh(1.0) ** 2))


def test_tanh_log_prob_integrates_to_one():
    raw = torch.linspace(-12, 12, 20_001, dtype=torch.float64).unsqueeze(-1)
    density = tanh_log_prob(gaussian([0.4], [0.8]), raw).exp()
    assert_close(torch.trapezoid(density, torch.tanh(raw[:, 0])), number(1.0), rtol=1e-5, atol=0)


@pytest.mark.parametrize("raw", [-40.0, 40.0])
def test_tanh_log_prob_stays_finite_where_the_tanh_saturates(raw):
    # 1 − tanh²(40) is 0 in floats; log(1 − tanh²x) → 2 log 2 − 2|x|
    p = Gaussian(torch.zeros(1), torch.ones(1))
    wanted = -0.5 * raw**2 - 0.5 * math.log(2 * math.pi) - (2 * math.log(2) - 2 * abs(raw))
    assert_close(tanh_log_prob(p, torch.tensor([raw])), torch.tensor(wanted))


few = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def vectors(elements, width=3):
    return st.lists(elements, min_size=width, max_size=width).map(number)


gaussians = st.builds(Gaussian, vectors(st.floats(-20, 20, allow_subnormal=False)), vectors(st.floats(0.1, 10)))


@few
@given(gaussians, gaussians)
def test_divergences_are_zero_at_equality_alone(p, q):
    apart = max((p.mean - q.mean).abs().max(), (p.std - q.std).abs().max())
    for divergence in (kl_divergence, wasserstein2):
        assert abs(divergence(p, p)) < 1e-12
        assert divergence(p, q) >= -1e-12
        if apart > 1e-3:
            assert divergence(p, q) > 0


@few
@given(gaussians, st.integers(0, 2), st.sampled_from([0.5, -0.5]), st.booleans())
def test_one_dimension_that_differs_is_enough(p, dimension, offset, of_mean):
    part = (p.mean if of_mean else p.std).clone()
    part[dimension] += offset if of_mean else abs(offset)
    q = p._replace(mean=part) if of_mean else p._replace(std=part)
    assert kl_divergence(p, q) > 1e-4
    assert wasserstein2(p, q) > 0.2  # 0.5² = 0.25


@few
@given(gaussians, gaussians)
def test_wasserstein_is_symmetric(p, q):
    assert wasserstein2(p, q) == wasserstein2(q, p)
