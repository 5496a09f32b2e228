"""Processes that share one batch: what has to be known of the whole of it, and which part of it is one's own.

Every process ("rank") holds the same weights and an equal number of the batch's columns. A gradient is the *average* of
the ranks' gradients, and a logged term the average of their terms. So a plain mean over columns is right as it stands;
whatever counts (a mask) or bends (a clamp) must see the average itself. Alone, every function here returns its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, distributed

from ccwm.ops.gaussian import full


def world_size() -> int:
    """How many processes share the batch."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def rank() -> int:
    """This process's number, from 0."""
    return distributed.get_rank() if world_size() > 1 else 0


def own_part(count: int) -> slice:
    """Which of ``count`` rows are this rank's: consecutive ones, as many as any other's or one more."""
    return slice(count * rank() // world_size(), count * (rank() + 1) // world_size())


def own_weight(count: int) -> float:
    """What a mean over this rank's part of ``count`` rows weighs in the average over ranks; 1 where parts are equal."""
    own: int = len(range(count)[own_part(count)])
    return own * world_size() / count


class _Average(torch.autograd.Function):
    """The mean over ranks; its gradient goes to each rank's own input, as gradients are averaged afterwards.

    With L = f(x̄) on every rank and x̄ = Σ x_r / W, the true gradient is Σ f′(x̄) ∇x_r / W: the average of f′(x̄) ∇x_r.
    """

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        mean = value.detach().clone()
        distributed.all_reduce(mean)
        return mean / world_size()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        return gradient


def average(value: Tensor) -> Tensor:
    """The mean of a value over all ranks, to be used inside a loss.   Any shape → the same."""
    if world_size() == 1:
        return value
    mean: Tensor = _Average.apply(value)  # type: ignore[no-untyped-call]
    return mean


def averaged(values: Sequence[Tensor]) -> list[Tensor]:
    """The means of many tensors of one dtype over all ranks, in one exchange and without a gradient."""
    if world_size() == 1:
        return list(values)
    flat = torch.cat([value.detach().flatten() for value in values])
    distributed.all_reduce(flat)
    flat /= world_size()
    parts = torch.split(flat, [value.numel() for value in values])
    return [part.view(value.shape) for part, value in zip(parts, values, strict=True)]


def gathered(value: Tensor) -> Tensor:
    """The columns of all ranks, without a gradient: [N, B / W] → [N, B]."""
    if world_size() == 1:
        return value
    parts = [torch.empty_like(value) for _ in range(world_size())]
    distributed.all_gather(parts, value.detach().contiguous())
    return torch.cat(parts, 1)


def picked(value: Tensor, index: Tensor) -> Tensor:
    """Rows ``index`` [N] of the whole batch's [T·B, F], given one's own columns [T, B / W, F]; one's own part of the N.

    Every rank gives the rows that it holds and zeros for the others, so that the sum is all rows; no gradient passes.
    """
    if world_size() == 1:
        return value.detach().flatten(0, 1)[index]
    columns = value.shape[1]
    time, column = index // (columns * world_size()), index % (columns * world_size()) - rank() * columns
    held = (column >= 0) & (column < columns)
    rows = full(value.detach())[time, column.clamp(0, columns - 1)]  # not every exchange knows half precision
    rows = torch.where(held.unsqueeze(-1), rows, 0)
    distributed.all_reduce(rows)
    return rows[own_part(len(index))].to(value.dtype)
