"""What holds for all numbers; the examples are few and always the same."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ccwm.ops.gaussian import kl_divergence, wasserstein2
from ccwm.ops.masking import masked_mean
from ccwm.ops.truncation import adaptive_mask, algorithm1_mask, scheduled_mask
from ccwm.structs import Gaussian

few = settings(max_examples=40, deadline=None, derandomize=True, database=None)

numbers = st.floats(-20, 20, allow_subnormal=False)
spreads = st.floats(0.1, 10)


def columns(elements, *, least=1, most=12):
    return st.lists(elements, min_size=least, max_size=most).map(lambda row: torch.tensor(row).unsqueeze(1))


def vectors(elements, width=3):
    return st.lists(elements, min_size=width, max_size=width).map(lambda row: torch.tensor(row, dtype=torch.float64))


gaussians = st.builds(Gaussian, vectors(numbers), vectors(spreads))


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


@few
@given(columns(numbers, least=4), st.integers(1, 3), st.integers(0, 5), st.floats(0.01, 2), st.floats(0, 2))
def test_a_larger_threshold_keeps_more(value, window, lookback, threshold, more):
    for rule, extra in ((adaptive_mask, {"lookback": lookback}), (algorithm1_mask, {})):
        strict = rule(value, threshold=threshold, window=window, **extra)
        loose = rule(value, threshold=threshold + more, window=window, **extra)
        assert (loose | ~strict).all()  # what the strict one keeps, the loose one keeps


@few
@given(columns(numbers, least=4), st.integers(1, 3), st.integers(0, 5), st.integers(0, 3))
def test_a_longer_lookback_keeps_less(value, window, lookback, more):
    near = adaptive_mask(value, threshold=0.3, window=window, lookback=lookback)
    far = adaptive_mask(value, threshold=0.3, window=window, lookback=lookback + more)
    assert (near | ~far).all()


@few
@given(columns(numbers, least=4), st.integers(1, 3))
def test_the_sign_of_all_values_does_not_matter(value, window):
    options = {"threshold": 0.3, "window": window, "lookback": 1}
    assert torch.equal(adaptive_mask(value, **options), adaptive_mask(-value, **options))


@few
@given(st.integers(1, 50), st.floats(0, 1), st.floats(0, 1))
def test_scheduled_keeps_a_prefix_that_shrinks_with_the_share(length, share, other):
    low, high = sorted((share, other))
    position = torch.arange(length).unsqueeze(1)
    fewer, more = (
        scheduled_mask(position, torch.full_like(position, length), final_share=p).int() for p in (high, low)
    )
    assert (fewer <= more).all()
    assert (more.diff(dim=0) <= 0).all()


@few
@given(st.lists(st.tuples(numbers, st.floats(-1e6, 1e6), st.booleans()), min_size=1, max_size=8))
def test_a_masked_mean_does_not_see_what_is_left_out(rows):
    value, other, mask = (torch.tensor(column) for column in zip(*rows, strict=True))
    assert torch.equal(masked_mean(value, mask), masked_mean(torch.where(mask, value, other), mask))
    if mask.any():
        assert torch.isclose(masked_mean(value, mask), value[mask].mean(), atol=1e-4)
