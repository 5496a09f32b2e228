import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from ccwm.losses.model import continue_loss, observation_loss


def number(value):
    return torch.tensor(value, dtype=torch.float64)


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


def test_continue_loss_is_low_for_the_right_answer():
    logit = number([math.log(3), math.log(3)])  # σ = ¾
    assert_close(continue_loss(logit, number([1.0, 1.0])), number(-math.log(0.75)))
    assert_close(continue_loss(logit, number([1.0, 0.0])), number(-(math.log(0.75) + math.log(0.25)) / 2))


@pytest.mark.parametrize(
    ("loss", "shapes"),
    [
        (lambda decoded, target: observation_loss(decoded, target, axes=3), [(2, 3, 2, 2)] * 2),
        (lambda logit: continue_loss(logit, number([[1.0, 0.0], [1.0, 1.0]])), [(2, 2)]),
    ],
)
def test_gradients_agree_with_finite_differences(loss, shapes):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert gradcheck(loss, inputs)
