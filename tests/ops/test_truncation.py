import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from ccwm.ops.truncation import (
    VALUE_FLOOR,
    adaptive_mask,
    algorithm1_mask,
    annealed_share,
    kept_pairs,
    outlier_threshold,
    relative_changes,
    scheduled_mask,
)


def column(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def steps(mask):
    """A mask of one column as a string: 1 kept, 0 left out."""
    return "".join(str(int(kept)) for kept in mask[:, 0])


def adaptive(value, *, window, lookback, threshold=0.4):
    return steps(adaptive_mask(column(*value), threshold=threshold, window=window, lookback=lookback))


def algorithm1(value, *, window, threshold=0.4):
    return steps(algorithm1_mask(column(*value), threshold=threshold, window=window))


def test_changes_of_the_sliding_mean():
    # Means of two: 1, 2, 4, 3, so Δ = 1/1, 2/2, 1/4
    assert_close(relative_changes(column(1, 1, 3, 5, 1), window=2), column(1, 1, 0.25))


def test_changes_of_single_values():
    assert_close(relative_changes(column(2, 3, 3), window=1), column(0.5, 0))


def test_negative_values_change_by_their_size():
    assert_close(relative_changes(column(-1, -1, -3, -5, -1), window=2), column(1, 1, 0.25))
    assert_close(relative_changes(column(-2, 1), window=1), column(1.5))  # |1 + 2| / |−2|


def test_a_value_near_zero_is_compared_with_the_floor():
    assert VALUE_FLOOR == 0.01
    assert_close(relative_changes(column(0, 0.002), window=1), column(0.2))  # 0.002 / 0.01
    assert_close(relative_changes(column(-0.001, 0.004), window=1), column(0.5))  # 0.005 / 0.01
    assert_close(relative_changes(column(0.02, 0.03), window=1), column(0.5))  # above the floor: 0.01 / 0.02


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_window_that_is_never_full_or_never_moves_detects_nothing(length):
    value = torch.rand(length, 2)
    assert relative_changes(value, window=3).shape == (0, 2)
    assert adaptive_mask(value, threshold=0.1, window=3, lookback=3).all()
    assert algorithm1_mask(value, threshold=0.1, window=3).all()


def test_adaptive_with_a_window_of_two():
    # Means of two: 1, 1, 1, 2, 3, 3, 3. Δ_2 = 1 and Δ_3 = ½ are sudden, at their newest steps t = 4 and 5.
    value = [1, 1, 1, 1, 3, 3, 3, 3]
    assert adaptive(value, window=2, lookback=0) == "11110011"
    assert adaptive(value, window=2, lookback=1) == "11100011"  # 3 … 4 and 4 … 5
    assert adaptive(value, window=2, lookback=2) == "11000011"
    assert adaptive(value, window=2, lookback=3) == "10000011"
    assert adaptive(value, window=2, lookback=0, threshold=0.6) == "11110111"  # only Δ_2


def test_adaptive_with_a_window_of_three():
    # Means of three: 1, 1, 2, 3, 4, 4. Δ_1 = 1 and Δ_2 = ½ (t = 4, 5) are sudden, Δ_3 = ⅓ (t = 6) is not.
    value = [1, 1, 1, 1, 4, 4, 4, 4]
    assert adaptive(value, window=3, lookback=0) == "11110011"
    assert adaptive(value, window=3, lookback=2) == "11000011"
    assert adaptive(value, window=3, lookback=0, threshold=0.3) == "11110001"


def test_a_change_of_exactly_the_threshold_is_not_sudden():
    assert adaptive([2, 3, 3], window=1, lookback=0, threshold=0.5) == "111"


def test_a_lookback_longer_than_the_window_clears_all_before_the_change():
    assert adaptive([1, 1, 1, 5, 5], window=1, lookback=3) == "00001"
    assert adaptive([1, 1, 1, 5, 5], window=1, lookback=1000) == "00001"


def test_columns_are_truncated_apart():
    value = torch.cat([column(1, 1, 9, 9), column(1, 1, 1, 1)], 1)
    mask = adaptive_mask(value, threshold=0.4, window=1, lookback=1)
    assert steps(mask) == "1001"
    assert steps(mask[:, 1:]) == "1111"


def test_algorithm1_to_the_letter_with_a_window_of_two():
    # Δ = 0, 0, 1, ½, 0, 0 (see above): one calm Δ_j with j = k − 2 … k keeps state k, so that all stay …
    assert algorithm1([1, 1, 1, 1, 3, 3, 3, 3], window=2) == "11111111"
    # … but here means 1, 2, 4, 8, 8 give Δ = 1, 1, 1, 0: states 0 … 2 see no calm one.
    assert algorithm1([1, 1, 3, 5, 11, 5], window=2) == "000111"


def test_algorithm1_to_the_letter_with_a_window_of_three():
    # Means of three 1, 2, 4, 4 give Δ = 1, 1, 0: state 2 is the first whose j = k − 3 … k holds the calm Δ_2.
    assert algorithm1([1, 1, 1, 4, 7, 1], window=3) == "001111"
    # Means 1, 1, 2, 4, 8, 16 give Δ = 0, 1, 1, 1, 1: the calm Δ_0 is last seen from state 3. The last states see
    # sudden ones only, and would be left out even where the prose keeps them.
    assert algorithm1([1, 1, 1, 1, 4, 7, 13, 28], window=3) == "11110000"


def test_scheduled_leaves_out_the_end_of_every_episode():
    # 0.3 of 10 steps is its last three; 0.5 of 5 steps is 2.5, of which the started one goes too.
    position = torch.tensor([[5, 0], [6, 1], [7, 2], [8, 3], [9, 4]])
    length = torch.tensor([[10, 5]] * 5)
    assert steps(scheduled_mask(position, length, final_share=0.3)) == "11000"
    assert steps(scheduled_mask(position, length, final_share=0.5)[:, 1:]) == "11100"
    assert scheduled_mask(position, length, final_share=0.0).all()
    assert not scheduled_mask(position, length, final_share=1.0).any()


def test_scheduled_follows_each_step_where_a_window_crosses_an_episode_end():
    position = torch.tensor([2, 3, 0, 1, 2]).unsqueeze(1)
    length = torch.tensor([4, 4, 3, 3, 3]).unsqueeze(1)
    assert steps(scheduled_mask(position, length, final_share=0.25)) == "10111"  # 3 of 4; 2.25 of 3
    assert steps(scheduled_mask(position, length, final_share=0.5)) == "00110"  # 2 of 4; 1.5 of 3


def test_the_final_share_falls_to_zero():
    shares = [annealed_share(at, initial=0.4, steps=1000) for at in (0, 250, 1000, 5000)]
    assert shares == pytest.approx([0.4, 0.3, 0.0, 0.0])


def test_a_pair_needs_both_ends_and_no_reset_between():
    kept = torch.tensor([1, 1, 0, 1, 1, 1], dtype=torch.bool).unsqueeze(1)
    none = torch.zeros_like(kept)
    assert steps(kept_pairs(kept, none)) == "10011"
    reset = none.clone()
    reset[4] = True  # an episode begins at 4: the pair (3, 4) is no transition, (4, 5) is one
    assert steps(kept_pairs(kept, reset)) == "10001"
    reset[0] = True  # a window that begins with its episode loses no pair
    assert steps(kept_pairs(kept, reset)) == "10001"


def test_the_fence_of_an_outlier_is_four_medians():
    # Quartiles −0.03 and 0.03 of the signed changes: 0.03 + 1.5 · 0.06
    assert_close(outlier_threshold(torch.tensor(0.03)), torch.tensor(0.12))


def test_where_a_value_is_at_rest_a_change_of_a_hundredth_is_no_event():
    assert_close(outlier_threshold(torch.tensor(0.0)), torch.tensor(0.01))
    assert_close(outlier_threshold(torch.tensor(0.002)), torch.tensor(0.01))  # 0.008


def test_the_fence_of_normal_changes_lies_at_2_7_standard_deviations():
    # The upper quartile of a normal variable is 0.6745 σ, and 4 · 0.6745 = 2.698
    changes = torch.randn(200_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64).abs()
    assert_close(outlier_threshold(changes.quantile(0.5)), torch.tensor(2.698).double(), atol=0.03, rtol=0)


few = settings(max_examples=40, deadline=None, derandomize=True, database=None)
values = st.lists(st.floats(-20, 20, allow_subnormal=False), min_size=4, max_size=12).map(lambda row: column(*row))


@few
@given(values, st.integers(1, 3), st.integers(0, 5), st.floats(0.01, 2), st.floats(0, 2))
def test_a_larger_threshold_keeps_more(value, window, lookback, threshold, more):
    for rule, extra in ((adaptive_mask, {"lookback": lookback}), (algorithm1_mask, {})):
        strict = rule(value, threshold=threshold, window=window, **extra)
        loose = rule(value, threshold=threshold + more, window=window, **extra)
        assert (loose | ~strict).all()  # what the strict one keeps, the loose one keeps


@few
@given(values, st.integers(1, 3), st.integers(0, 5), st.integers(0, 3))
def test_a_longer_lookback_keeps_less(value, window, lookback, more):
    near = adaptive_mask(value, threshold=0.3, window=window, lookback=lookback)
    far = adaptive_mask(value, threshold=0.3, window=window, lookback=lookback + more)
    assert (near | ~far).all()


@few
@given(values, st.integers(1, 3))
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
