"""Masked means, free nats and squares of one rank by hand, and of two by the formula that they share."""

from __future__ import annotations

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from ccwm.agents import distributed
from ccwm.agents.distributed import (
    all_gather_columns,
    all_reduce_mean,
    free_nats,
    masked_mean,
    own_rows,
    rank,
    square_of_mean,
)

few = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def number(value, *, grad=False):
    return torch.tensor(value, dtype=torch.float64, requires_grad=grad)


def flags(*values):
    return torch.tensor(values, dtype=torch.bool)


def test_a_masked_mean_divides_by_what_is_kept():
    value = number([[1.0, 2.0], [30.0, 6.0]])
    assert_close(masked_mean(value, flags([1, 1], [0, 1])), number(3.0))  # (1 + 2 + 6) / 3


def test_an_empty_mask_gives_zero_and_no_gradient():
    value = number([1.0, 2.0], grad=True)
    mean = masked_mean(value, flags(0, 0))
    mean.backward()
    assert_close(mean.detach(), number(0.0))
    assert_close(value.grad, number([0.0, 0.0]))
    assert_close(masked_mean(torch.zeros(0), torch.zeros(0, dtype=torch.bool)), torch.tensor(0.0))


def test_a_left_out_value_gets_no_gradient():
    value = number([1.0, 2.0, 3.0], grad=True)
    masked_mean(value, flags(1, 0, 1)).backward()
    assert_close(value.grad, number([0.5, 0.0, 0.5]))


@few
@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(-1e6, 1e6), st.booleans()), min_size=1, max_size=8))
def test_a_masked_mean_does_not_see_what_is_left_out(rows):
    value, other, mask = (torch.tensor(column) for column in zip(*rows, strict=True))
    assert torch.equal(masked_mean(value, mask), masked_mean(torch.where(mask, value, other), mask))
    if mask.any():
        assert torch.isclose(masked_mean(value, mask), value[mask].mean(), atol=1e-4)


@pytest.mark.parametrize(("nats", "loss", "slope"), [(2.0, 3.0, 0.0), (8.0, 8.0, 1.0), (3.0, 3.0, 0.0)])
def test_free_nats_cost_nothing_below_and_count_in_full_above(nats, loss, slope):
    divergence = number(nats, grad=True)
    got = free_nats(divergence, 3.0)
    got.backward()
    assert_close(got.detach(), number(loss))
    assert_close(divergence.grad, number(slope))


def test_the_square_of_a_mean_is_a_square():
    mean = number(-3.0, grad=True)
    got = square_of_mean(mean)
    got.backward()
    assert_close(got.detach(), number(9.0))
    assert_close(mean.grad, number(-6.0))  # 2g


def test_one_process_has_everything():
    assert rank() == 0
    assert own_rows(7) == slice(0, 7)
    value = number([[1.0, 2.0]], grad=True)
    for same in (all_reduce_mean(value), all_gather_columns(value)):
        assert_close(same, value.detach())
        assert not same.requires_grad


class TwoRanks(threading.local):
    """Collectives between two threads of this process, each a rank."""

    def __init__(self):
        self.rank = 0

    def install(self, monkeypatch):
        self_, parts, barrier = self, [None, None], threading.Barrier(2, timeout=20)

        def exchange(value):
            parts[self_.rank] = value.clone()
            barrier.wait()
            both = [part.clone() for part in parts]
            barrier.wait()
            return both

        def all_gather(out, value):
            for place, part in zip(out, exchange(value), strict=True):
                place.copy_(part)

        fakes = {
            "is_initialized": lambda: True,
            "get_world_size": lambda: 2,
            "get_rank": lambda: self_.rank,
            "all_reduce": lambda value: value.copy_(sum(exchange(value))),
            "all_gather": all_gather,
        }
        for name, fake in fakes.items():
            monkeypatch.setattr(distributed.distributed, name, fake)

    def run(self, function, *inputs):
        """What each rank makes of its inputs."""
        results, errors = [None, None], []

        def work(index):
            self.rank = index
            try:
                results[index] = function(*(both[index] for both in inputs))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        return results


@pytest.fixture
def two_ranks(monkeypatch):
    ranks = TwoRanks()
    ranks.install(monkeypatch)
    return ranks


def test_the_masked_mean_of_two_ranks(two_ranks):
    """Rank 0 keeps 1 and 2, rank 1 keeps 9 alone: the whole has (1 + 2 + 9) / 3 = 4, with a slope of 1/3 each."""
    values = [number([1.0, 2.0], grad=True), number([9.0, 50.0], grad=True)]
    means = two_ranks.run(masked_mean, values, [flags(1, 1), flags(1, 0)])
    # Each rank divides its own sum by the mean count, (2 + 1) / 2: 3 / 1.5 and 9 / 1.5.
    assert_close([mean.detach() for mean in means], [number(2.0), number(6.0)])
    assert_close(sum(means).detach() / 2, number(4.0))
    (sum(means) / 2).backward()  # what DistributedDataParallel does to the gradients
    assert_close([value.grad for value in values], [number([1 / 3, 1 / 3]), number([1 / 3, 0.0])])


@pytest.mark.parametrize(
    ("masks", "wanted"),
    [
        ([flags(0, 0), flags(0, 0)], [0.0, 0.0]),
        ([flags(0, 0), flags(0, 1)], [0.0, 100.0]),  # 50 / ½: the mean over ranks is 50, the only one that is kept
    ],
)
def test_the_masked_mean_where_a_rank_keeps_nothing(two_ranks, masks, wanted):
    values = [number([1.0, 2.0]), number([9.0, 50.0])]
    assert_close(two_ranks.run(masked_mean, values, masks), [number(mean) for mean in wanted])


@pytest.mark.parametrize(
    ("nats", "loss", "slopes"),
    [
        ([1.0, 4.0], 3.0, [0.0, 0.0]),  # the whole has 2.5, below: no gradient, though rank 1 alone is above
        ([1.0, 7.0], 4.0, [0.5, 0.5]),  # the whole has 4, above: both count, though rank 0 alone is below
    ],
)
def test_the_free_nats_of_two_ranks(two_ranks, nats, loss, slopes):
    divergences = [number(value, grad=True) for value in nats]
    losses = two_ranks.run(lambda divergence: free_nats(divergence, 3.0), divergences)
    mean = sum(losses) / 2
    assert_close(mean.detach(), number(loss))
    mean.backward()
    assert_close([divergence.grad for divergence in divergences], [number(slope) for slope in slopes])


def test_the_square_of_the_mean_of_two_ranks(two_ranks):
    # Means of 1 and 5: g = 3, g² = 9. The ranks have 3 (2 · 1 − 3) = −3 and 3 (2 · 5 − 3) = 21, whose mean is 9.
    means = [number(1.0, grad=True), number(5.0, grad=True)]
    squares = two_ranks.run(square_of_mean, means)
    assert_close([square.detach() for square in squares], [number(-3.0), number(21.0)])
    (sum(squares) / 2).backward()
    assert_close([mean.grad for mean in means], [number(3.0), number(3.0)])  # ∂g²/∂m = 2g / 2


@few
@given(st.lists(st.floats(-20, 20), min_size=2, max_size=8).filter(lambda values: len(values) % 2 == 0))
def test_ranks_share_the_square_of_the_whole_masked_mean_and_its_gradient(values):
    """As ``released`` makes it: a square of a masked mean, with masks of other sizes on each rank."""
    half = len(values) // 2
    mask = flags(*(index % 3 != 1 for index in range(len(values))))

    def gradients(split):
        value = number(values, grad=True)
        with pytest.MonkeyPatch.context() as patch:
            if split:
                ranks = TwoRanks()
                ranks.install(patch)
                parts = [[value[:half], value[half:]], [mask[:half], mask[half:]]]
                loss = sum(ranks.run(lambda part, kept: square_of_mean(masked_mean(part, kept)), *parts)) / 2
            else:
                loss = masked_mean(value, mask).square()
        loss.backward()
        return loss.detach(), value.grad

    assert_close(gradients(split=True), gradients(split=False))


def test_ranks_take_their_rows_in_order(two_ranks):
    assert two_ranks.run(lambda count: own_rows(count), [6, 6]) == [slice(0, 3), slice(3, 6)]


def test_columns_of_all_ranks_stand_side_by_side(two_ranks):
    whole = number([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    assert_close(two_ranks.run(all_gather_columns, [whole[:, :2], whole[:, 2:]]), [whole, whole])


def test_means_over_ranks_leave_the_rank_own_value_alone(two_ranks):
    values = [number([1.0, 2.0]), number([3.0, 6.0])]
    assert_close(two_ranks.run(all_reduce_mean, values), [number([2.0, 4.0])] * 2)
    assert_close(values, [number([1.0, 2.0]), number([3.0, 6.0])])
