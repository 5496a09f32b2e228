import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from ccwm.losses.retrace import bisimulation, l2
from ccwm.structs import Gaussian, LatentState


def number(value):
    return torch.tensor(value, dtype=torch.float64)


def state(mean, *, stoch=None, deter=None):
    mean = torch.as_tensor(mean, dtype=torch.float64)
    part = mean if stoch is None else number(stoch)
    return LatentState(torch.zeros_like(mean) if deter is None else number(deter), part, mean, torch.ones_like(mean))


def test_bisimulation_of_a_two_dimensional_latent():
    # ‖(1, 2) − (4, −2)‖₁ = 3 + 4 = 7;  ½ (1 − 3)² = 2;  W₂ = (0 − 1)² + (1 − 3)² + (1 − 2)² = 6
    # (7 − 2 − 0.5·6)² = 4
    result = bisimulation(
        state([1.0, 2.0], stoch=[90.0, 90.0]),  # the distance is between means, not samples
        state([4.0, -2.0], stoch=[-90.0, 0.0]),
        reward_original=number(1.0),
        reward_retraced=number(3.0),
        next_original=Gaussian(number([0.0, 1.0]), number([1.0, 1.0])),
        next_retraced=Gaussian(number([1.0, 3.0]), number([1.0, 2.0])),
        discount=0.5,
    )
    assert_close(tuple(result), (number(4.0), number(7.0), number(2.0), number(6.0)))


def test_bisimulation_is_squared_per_state():
    # ‖·‖₁ = 2 and ½ (r − ř)² = 4, the other way round in the second state: (−2)² and 2², where the mean is 0.
    nowhere = Gaussian(torch.zeros(2, 1, dtype=torch.float64), torch.ones(2, 1, dtype=torch.float64))
    result = bisimulation(
        state([[0.0], [0.0]]),
        state([[2.0], [4.0]]),
        reward_original=number([0.0, 0.0]),
        reward_retraced=number([math.sqrt(8), 2.0]),
        next_original=nowhere,
        next_retraced=nowhere,
        discount=0.99,
    )
    assert_close(result.loss, number([4.0, 4.0]))


def test_l2_is_over_the_whole_feature():
    # stoch (1 − 3)² + (2 − 2)², deter (0 − 1)² + (5 − 2)²
    got = l2(
        state([0.0, 0.0], stoch=[1.0, 2.0], deter=[0.0, 5.0]), state([9.0, 9.0], stoch=[3.0, 2.0], deter=[1.0, 2.0])
    )
    assert_close(got, number(14.0))


def bisimulation_of(mean, other, reward, other_reward, following, following_std, other_following, other_std):
    return bisimulation(
        state(mean),
        state(other),
        reward_original=reward,
        reward_retraced=other_reward,
        next_original=Gaussian(following, following_std.exp()),
        next_retraced=Gaussian(other_following, other_std.exp()),
        discount=0.9,
    ).loss


def l2_of(mean, other):
    return l2(state(mean), state(other))


@pytest.mark.parametrize(
    ("loss", "shapes"),
    [
        (l2_of, [(3, 2)] * 2),
        (bisimulation_of, [(3, 2)] * 2 + [(3,)] * 2 + [(3, 2)] * 4),
    ],
)
def test_gradients_agree_with_finite_differences(loss, shapes):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert gradcheck(loss, inputs)
