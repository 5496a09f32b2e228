import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.testing import assert_close

from ccwm.losses.model import balanced_kl
from ccwm.losses.retrace import Comparison, bisimulation, bisimulation_gap, compare, l1, l2, metric
from ccwm.ops.scalars import TwoHot, UnitGaussian
from ccwm.structs import Gaussian, LatentState

few = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def number(value):
    return torch.tensor(value, dtype=torch.float64)


def state(mean, *, stoch=None, deter=None):
    mean = torch.as_tensor(mean, dtype=torch.float64)
    part = mean if stoch is None else number(stoch)
    return LatentState(torch.zeros_like(mean) if deter is None else number(deter), part, mean, torch.ones_like(mean))


def compared(l1, reward_kl, w2):
    return Comparison(number(l1), number(reward_kl), number(w2))


def test_three_measures_of_a_two_dimensional_latent():
    # ‖(1, 2) − (4, −2)‖₁ = 3 + 4 = 7;  ½ (1 − 3)² = 2;  W₂ = (0 − 1)² + (1 − 3)² + (1 − 2)² = 6
    result = compare(
        state([1.0, 2.0], stoch=[90.0, 90.0]),  # the distance is between means, not samples
        state([4.0, -2.0], stoch=[-90.0, 0.0]),
        reward_original=UnitGaussian(number(1.0)),
        reward_retraced=UnitGaussian(number(3.0)),
        next_original=Gaussian(number([0.0, 1.0]), number([1.0, 1.0])),
        next_retraced=Gaussian(number([1.0, 3.0]), number([1.0, 2.0])),
    )
    assert_close(tuple(result), (number(7.0), number(2.0), number(6.0)))
    assert_close(bisimulation_gap(result, discount=0.5), number(2.0))  # 7 − 2 − 0.5·6
    assert_close(bisimulation(result, discount=0.5), number(4.0))  # 2²
    assert_close(metric(result, discount=0.5), number(12.0))  # 7 + 2 + 0.5·6


def test_the_rewards_of_bins_are_compared_as_categoricals():
    nowhere = Gaussian(number([0.0]), number([1.0]))
    # p = (½, ½), q = (¾, ¼): KL[p‖q] = ½ log (4/3), and not the other way round.
    half, more = (TwoHot(number(logits), number([0.0, 1.0])) for logits in ([0.0, 0.0], [math.log(3), 0.0]))
    ends = {"next_original": nowhere, "next_retraced": nowhere}
    result = compare(state([0.0]), state([0.0]), reward_original=half, reward_retraced=more, **ends)
    assert_close(tuple(result), (number(0.0), number(0.5 * math.log(4 / 3)), number(0.0)))


def test_bisimulation_is_squared_per_state():
    # A gap of 2 − 4 and one of 4 − 2: (−2)² and 2², where the mean is 0.
    assert_close(bisimulation(compared([2.0, 4.0], [4.0, 2.0], [0.0, 0.0]), discount=0.99), number([4.0, 4.0]))


def test_the_papers_bisimulation_is_zero_for_two_different_states():
    """Two states with ‖·‖₁ = γW₂ and equal rewards: the paper's loss has nothing to say, though ž ≠ z̃."""
    discount = 0.5
    original, retraced = state([1.0, -1.0]), state([2.0, 2.0])  # ‖·‖₁ = 1 + 3 = 4
    reward = UnitGaussian(number(0.7))  # KL = 0
    following = Gaussian(number([0.0, 0.0]), number([1.0, 1.0]))
    other = Gaussian(number([2.0, 0.0]), number([1.0, 3.0]))  # W₂ = 2² + 2² = 8, and 4 = 0.5 · 8
    assert not torch.equal(original.feature, retraced.feature)
    result = compare(
        original, retraced, reward_original=reward, reward_retraced=reward,
        next_original=following, next_retraced=other,
    )  # fmt: skip
    assert bisimulation(result, discount=discount) == 0
    # The losses that retrace see how far apart they are.
    assert_close(metric(result, discount=discount), number(8.0))  # 4 + 0 + 0.5 · 8
    divergence = balanced_kl(original.gaussian, retraced.gaussian, dynamics=1, representation=1)
    assert_close(divergence, number(5.0))  # ½ (1² + 3²)
    assert_close(l2(original, retraced), number(10.0))  # 1² + 3²


@few
@given(st.floats(0.01, 10), st.floats(0.1, 0.99), st.floats(0, 0.99))
def test_bisimulation_is_blind_along_a_whole_surface(distance, discount, share):
    """Any distance ‖·‖₁ > 0, split between the reward's KL and γW₂, is worth 0 to the paper's loss, not to metric."""
    same = compared(distance, share * distance, (1 - share) * distance / discount)
    assert bisimulation(same, discount=discount) < 1e-25
    assert_close(metric(same, discount=discount), number(2 * distance))


@few
@given(st.lists(st.just(0.0) | st.floats(1e-9, 10), min_size=3, max_size=3))
def test_metric_is_zero_only_where_all_three_agree(parts):
    assert (metric(compared(*parts), discount=0.99) == 0) == (max(parts) == 0)


def test_l1_is_of_means_and_l2_over_the_whole_feature():
    # means |0 − 9| + |0 − 9|;  stoch (1 − 3)² + (2 − 2)², deter (0 − 1)² + (5 − 2)²
    one = state([0.0, 0.0], stoch=[1.0, 2.0], deter=[0.0, 5.0])
    other = state([9.0, 9.0], stoch=[3.0, 2.0], deter=[1.0, 2.0])
    assert_close(l1(one, other), number(18.0))
    assert_close(l2(one, other), number(14.0))


def distance_of(distance):
    """The distance as a function of plain tensors; exp(std) is positive."""

    def of(mean, other, reward, other_reward, following, following_std, other_following, other_std):
        result = compare(
            state(mean),
            state(other),
            reward_original=UnitGaussian(reward),
            reward_retraced=UnitGaussian(other_reward),
            next_original=Gaussian(following, following_std.exp()),
            next_retraced=Gaussian(other_following, other_std.exp()),
        )
        return distance(result, discount=0.9)

    return of


def l2_of(mean, other):
    return l2(state(mean), state(other))


@pytest.mark.parametrize(
    ("loss", "shapes"),
    [
        (l2_of, [(3, 2)] * 2),
        *((distance_of(distance), [(3, 2)] * 2 + [(3,)] * 2 + [(3, 2)] * 4) for distance in (bisimulation, metric)),
    ],
)
def test_gradients_agree_with_finite_differences(loss, shapes):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert gradcheck(loss, inputs)
