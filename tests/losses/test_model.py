import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.testing import assert_close

from ccwm.losses.model import balanced_kl, observation_loss, scale_gradient
from ccwm.ops.gaussian import kl_divergence
from ccwm.structs import Gaussian


def number(value, *, grad=False):
    return torch.tensor(value, dtype=torch.float64, requires_grad=grad)


def test_the_observation_loss_is_summed_over_the_observation_and_nothing_else():
    decoded, target = torch.zeros(2, 3, 2, 2), torch.zeros(2, 3, 2, 2)
    target[0] += 1.0  # 12 entries, each ½·1²
    target[1, 0, 0, 0] = 4.0  # one entry, ½·4²
    assert_close(observation_loss(decoded, target, axes=3), torch.tensor([6.0, 8.0]))


def test_observations_may_be_vectors_with_leading_axes():
    decoded = number([[[0.0, 0.0], [1.0, 2.0]]])  # [1, 2, 2]
    target = number([[[2.0, 4.0], [1.0, 0.0]]])
    assert_close(observation_loss(decoded, target, axes=1), number([[10.0, 2.0]]))  # ½ (2² + 4²), ½ · 2²


def test_a_nearer_observation_costs_less():
    target = torch.full((1, 3, 1, 1), 2.0)
    assert_close(observation_loss(torch.zeros(1, 3, 1, 1), target, axes=3), torch.tensor([6.0]))  # 3 · ½·2²
    assert_close(observation_loss(torch.ones(1, 3, 1, 1), target, axes=3), torch.tensor([1.5]))


def gaussians(*, rows=3, seed=0):
    """A posterior and a prior [rows, 2] that a gradient can reach."""
    generator = torch.Generator().manual_seed(seed)
    parts = [torch.randn(rows, 2, dtype=torch.float64, generator=generator) for _ in range(4)]
    mean, std, other, other_std = parts
    return [Gaussian(m.requires_grad_(), s.exp().requires_grad_()) for m, s in ((mean, std), (other, other_std))]


def slopes(loss, *distributions):
    return torch.autograd.grad(loss, [part for each in distributions for part in each])


def test_a_balanced_kl_by_hand():
    # N(3, 1) from N(1, 2): log 2 + (1 + 2²) / (2 · 2²) − ½ = log 2 + ⅛
    posterior, prior = (Gaussian(number([m], grad=True), number([s], grad=True)) for m, s in ((3.0, 1.0), (1.0, 2.0)))
    loss = balanced_kl(posterior, prior, dynamics=0.5, representation=0.1)
    assert_close(loss.detach(), number(math.log(2) + 0.125))  # its value does not know of the weights
    # ∂/∂μ_p = (μ_p − μ_q) / σ_q² = ½;  ∂/∂σ_p = σ_p / σ_q² − 1 / σ_p = −¾
    # ∂/∂μ_q = −½;  ∂/∂σ_q = 1 / σ_q − (σ_p² + (μ_p − μ_q)²) / σ_q³ = ½ − 5/8 = −⅛
    wanted = [0.1 * 0.5, 0.1 * -0.75, 0.5 * -0.5, 0.5 * -0.125]
    assert_close(torch.cat(slopes(loss, posterior, prior)), number(wanted))


@settings(max_examples=20, deadline=None, derandomize=True, database=None)
@given(st.floats(0, 2), st.floats(0, 2), st.integers(0, 99))
def test_its_gradient_is_that_of_two_divergences_with_stop_gradients(dynamics, representation, seed):
    posterior, prior = gaussians(seed=seed)
    still_posterior, still_prior = (Gaussian(*(part.detach() for part in each)) for each in (posterior, prior))
    got = balanced_kl(posterior, prior, dynamics=dynamics, representation=representation)
    two = dynamics * kl_divergence(still_posterior, prior) + representation * kl_divergence(posterior, still_prior)
    assert_close(got, kl_divergence(posterior, prior))
    assert_close(slopes(got.sum(), posterior, prior), slopes(two.sum(), posterior, prior))


def test_with_equal_weights_of_one_it_is_the_plain_divergence_to_the_bit():
    posterior, prior = gaussians()
    got, plain = balanced_kl(posterior, prior, dynamics=1, representation=1), kl_divergence(posterior, prior)
    assert torch.equal(got, plain)
    pairs = zip(slopes(got.sum(), posterior, prior), slopes(plain.sum(), posterior, prior), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("scale", [0.0, 0.1, 0.5, 0.8, 1.0, 3.0])
def test_scaling_a_gradient_keeps_the_value_to_the_bit(scale):
    gaussian, _ = gaussians()
    scaled = scale_gradient(gaussian, scale)
    assert all(torch.equal(one, other) for one, other in zip(scaled, gaussian, strict=True))
    # Σ 2 mean + 3 std: slopes of 2 and 3, times the scale.
    got = slopes((2 * scaled.mean + 3 * scaled.std).sum(), gaussian)
    ones = torch.ones(3, 2, dtype=torch.float64)
    assert_close(got, (2 * scale * ones, 3 * scale * ones))


@pytest.mark.parametrize(
    ("loss", "shapes"),
    [
        (lambda decoded, target: observation_loss(decoded, target, axes=3), [(2, 3, 2, 2)] * 2),
        (lambda decoded, target: observation_loss(decoded, target, axes=1), [(2, 3)] * 2),
        (
            lambda mean, std, other, other_std: balanced_kl(
                Gaussian(mean, std.exp()), Gaussian(other, other_std.exp()), dynamics=1, representation=1
            ),
            [(2, 3)] * 4,
        ),
    ],
)
def test_gradients_agree_with_finite_differences(loss, shapes):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert gradcheck(loss, inputs)
