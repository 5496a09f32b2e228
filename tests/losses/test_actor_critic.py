import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from ccwm.losses.actor_critic import critic_loss, dynamics_actor_loss, reinforce_actor_loss
from ccwm.ops.scalars import TwoHot, UnitGaussian


def number(value, *, grad=False):
    return torch.tensor(value, dtype=torch.float64, requires_grad=grad)


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def test_the_actor_climbs_the_weighted_return():
    target, weight = number([[2.0], [6.0]], grad=True), number([[1.0], [0.5]])
    loss = dynamics_actor_loss(target, weight)
    loss.backward()
    assert_close(loss.detach(), number(-2.5))  # −(2 + 3) / 2
    assert_close(target.grad, number([[-0.5], [-0.25]]))


def test_reinforce_makes_a_good_action_likelier_with_a_stop_gradient_on_the_advantage():
    log_prob, advantage = number([[-1.0], [-2.0]], grad=True), number([[3.0], [-4.0]], grad=True)
    loss = reinforce_actor_loss(log_prob, advantage, number([[1.0], [0.5]]))
    loss.backward()
    assert_close(loss.detach(), number(-0.5))  # −(3·−1 + 0.5·−4·−2) / 2
    assert_close(log_prob.grad, number([[-1.5], [1.0]]))  # −w A / 2
    assert advantage.grad is None


def test_the_critic_regresses_on_a_detached_return():
    value, target = number([[1.0], [2.0]], grad=True), number([[4.0], [0.0]], grad=True)
    loss = critic_loss(UnitGaussian(value), target, number([[1.0], [0.5]]))
    loss.backward()
    assert_close(loss.detach(), number(2.75))  # (½·3² + 0.5·½·2²) / 2
    assert_close(value.grad, number([[-1.5], [0.5]]))  # w (v − G) / 2
    assert target.grad is None


def test_a_critic_of_bins_learns_the_likelihood_of_a_detached_return():
    # Two equal bins: each target costs log 2, with weights 1 and ½ over 2 states: ¾ log 2. Slope: w (p − q) / 2.
    logits, target = number([[[0.0, 0.0]], [[0.0, 0.0]]], grad=True), number([[1.0], [4.0]], grad=True)
    loss = critic_loss(TwoHot(logits, number([0.0, 4.0])), target, number([[1.0], [0.5]]))
    loss.backward()
    assert_close(loss.detach(), number(0.75 * math.log(2)))
    assert_close(logits.grad, number([[[-0.125, 0.125]], [[0.125, -0.125]]]))  # q = (¾, ¼) and (0, 1)
    assert target.grad is None


@pytest.mark.parametrize(
    ("loss", "shapes"),
    [
        (dynamics_actor_loss, [(2, 3)] * 2),
        (lambda log_prob: reinforce_actor_loss(log_prob, random(2, 3), torch.ones(2, 3)), [(2, 3)]),
        (lambda value: critic_loss(UnitGaussian(value), random(2, 3), torch.ones(2, 3)), [(2, 3)]),
    ],
)
def test_gradients_agree_with_finite_differences(loss, shapes):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert gradcheck(loss, inputs)
