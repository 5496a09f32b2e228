"""What reward, critic and continue heads predict: means, likelihoods and divergences by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.testing import assert_close

from ccwm.ops.scalars import Bernoulli, TwoHot, UnitGaussian, two_hot
from ccwm.ops.symlog import symexp_bins

few = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def number(value, *, grad=False):
    return torch.tensor(value, dtype=torch.float64, requires_grad=grad)


BINS = number([-3.0, -1.0, 0.0, 1.0, 3.0])
LOG2, LOG3 = math.log(2), math.log(3)


@pytest.mark.parametrize(
    ("value", "below", "share"),
    [
        (0.25, 2, 0.25),  # between 0 and 1, a quarter of the way
        (2.5, 3, 0.75),  # between 1 and 3
        (-2.5, 0, 0.25),  # between −3 and −1
        (0.0, 2, 0.0),  # on a bin: all of it
        (-3.0, 0, 0.0),
        (3.0, 3, 1.0),  # on the last bin, which has none above it
        (99.0, 3, 1.0),  # beyond the bins
        (-99.0, 0, 0.0),
    ],
)
def test_a_value_is_shared_by_the_two_bins_around_it(value, below, share):
    got = two_hot(number(value), BINS)
    assert got[0].item() == below
    assert_close(got[1], number(share))


@few
@given(st.floats(-402, 402), st.integers(3, 63))
def test_the_mean_of_the_two_bins_is_the_value(value, count):
    bins = symexp_bins(count, 6.0).double()
    below, share = two_hot(number(value), bins)
    assert 0 <= share <= 1
    assert_close((1 - share) * bins[below] + share * bins[below + 1], number(value), atol=1e-9, rtol=1e-9)


@few
@given(st.floats(-402, 402))
def test_a_distribution_fitted_to_a_value_has_it_as_its_mean(value):
    """Logits that put the weights of ``two_hot`` on its bins, and nothing elsewhere."""
    bins = symexp_bins(63, 6.0).double()
    below, share = two_hot(number(value), bins)
    logits = torch.full((63,), -1e9, dtype=torch.float64)
    logits[below], logits[below + 1] = (1 - share).log(), share.log()
    assert_close(TwoHot(logits, bins).mean, number(value), atol=1e-9, rtol=1e-9)


def test_values_keep_their_axes():
    below, share = two_hot(number([[0.25, 2.5], [-9.0, 9.0]]), BINS)
    assert below.tolist() == [[2, 3], [0, 3]]
    assert_close(share, number([[0.25, 0.75], [0.0, 1.0]]))


def test_the_mean_of_a_categorical():
    # p = (1, 1, 2, 2, 2) / 8: (−3 − 1 + 0 + 2 · 1 + 2 · 3) / 8 = 4 / 8
    logits = number([[0.0, 0.0, LOG2, LOG2, LOG2]]) + 7.0  # what all logits share does not matter
    assert_close(TwoHot(logits, BINS).mean, number([0.5]))


def test_the_likelihood_of_a_value_between_two_bins():
    # p = (1, 1, 2, 2, 2) / 8 again. 0.25 is ¾ of bin 0 and ¼ of bin 1: −¾ log ¼ − ¼ log ¼ = 2 log 2;
    # −2.5 is ¾ of bin −3 and ¼ of bin −1, each log 8; 1.5 is ¾ of bin 1 and ¼ of bin 3, each log 4.
    logits = number([0.0, 0.0, LOG2, LOG2, LOG2]).expand(3, -1)
    assert_close(TwoHot(logits, BINS).nll(number([0.25, -2.5, 1.5])), number([2 * LOG2, 3 * LOG2, 2 * LOG2]))
    # −0.5 lies between bins of ⅛ and of ¼: ½ · 3 log 2 + ½ · 2 log 2.
    assert_close(TwoHot(logits[0], BINS).nll(number(-0.5)), number(2.5 * LOG2))


def test_the_likelihood_is_highest_at_the_shares_of_the_value():
    """The slope of a cross entropy is p − q: 0 where the softmax is the two-hot of the target."""
    logits = number([-90.0, -90.0, math.log(0.75), math.log(0.25), -90.0], grad=True)
    TwoHot(logits, BINS).nll(number(0.25)).backward()
    assert_close(logits.grad, torch.zeros(5, dtype=torch.float64), atol=1e-12, rtol=0)


def test_the_divergence_of_categoricals():
    # p = (½, ½), q = (¾, ¼): ½ log (½ / ¾) + ½ log (½ / ¼) = ½ (log ⅔ + log 2) = ½ log (4/3)
    bins = number([0.0, 1.0])
    p, q = TwoHot(number([3.0, 3.0]), bins), TwoHot(number([LOG3, 0.0]), bins)
    assert_close(p.kl(q), number(0.5 * math.log(4 / 3)))
    # ¾ log (¾ / ½) + ¼ log (¼ / ½) = ¾ log 3 − log 2
    assert_close(q.kl(p), number(0.75 * LOG3 - LOG2))


logits_of_five = st.lists(st.floats(-10, 10), min_size=5, max_size=5)


@few
@given(logits_of_five, logits_of_five)
def test_a_divergence_is_never_negative_and_zero_of_a_distribution_from_itself(one, other):
    p, q = TwoHot(number(one), BINS), TwoHot(number(other), BINS)
    assert p.kl(q) >= -1e-12
    assert_close(p.kl(TwoHot(p.logits + 3.0, BINS)), number(0.0), atol=1e-12, rtol=0)
    wanted = torch.distributions.kl_divergence(*(torch.distributions.Categorical(logits=d.logits) for d in (p, q)))
    assert_close(p.kl(q), wanted)


def test_rows_of_the_first_axis():
    two = TwoHot(number([[0.0, LOG3], [LOG3, 0.0]]), number([0.0, 4.0]))
    assert_close(two.rows(1).mean, number(1.0))
    assert_close(two.rows(slice(1)).mean, number([3.0]))
    assert_close(UnitGaussian(number([1.0, 2.0])).rows(slice(1, None)).mean, number([2.0]))


def test_a_unit_gaussian():
    gaussian = UnitGaussian(number([1.0, -2.0]))
    assert_close(gaussian.nll(number([3.0, -2.0])), number([2.0, 0.0]))  # ½ · 2², without its constant
    assert_close(gaussian.kl(UnitGaussian(number([4.0, -3.0]))), number([4.5, 0.5]))  # ½ · 3², ½ · 1²


def test_a_bernoulli():
    flag = Bernoulli(number([LOG3, LOG3, 0.0]))  # σ(log 3) = ¾
    assert_close(flag.mean, number([0.75, 0.75, 0.5]))
    assert_close(flag.nll(number([1.0, 0.0, 1.0])), number([math.log(4 / 3), 2 * LOG2, LOG2]))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda logits: TwoHot(logits, BINS).nll(number([0.25, -2.0, 50.0])), [(3, 5)]),
        (lambda logits: TwoHot(logits, BINS).mean, [(3, 5)]),
        (lambda one, other: TwoHot(one, BINS).kl(TwoHot(other, BINS)), [(3, 5)] * 2),
        (lambda one, other: UnitGaussian(one).kl(UnitGaussian(other)), [(3,)] * 2),
        (lambda logit: Bernoulli(logit).nll(number([1.0, 0.0, 1.0])), [(3,)]),
    ],
)
def test_gradients_agree_with_finite_differences(function, shapes):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert gradcheck(function, inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_mean_is_not_taken_in_half_precision(dtype):
    """Logits are float32 behind a network's output; a product of matrices would go back to half precision."""
    logits = torch.randn(7, 63, generator=torch.Generator().manual_seed(0))
    distribution = TwoHot(logits, symexp_bins(63, 6.0))
    with torch.autocast("cpu", dtype=dtype):
        assert torch.equal(distribution.mean, (logits.softmax(-1) * distribution.bins).sum(-1))
        assert distribution.mean.dtype == torch.float32
