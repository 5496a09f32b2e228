"""Ranks that share one batch, each with its own rows: the only place of the learner that knows of them.

DistributedDataParallel averages gradients over ranks, which hold equally many windows. So a plain mean over a rank's
rows is right as it stands; only what counts (a mask) or bends (a clamp) needs a number of the whole batch. With one
rank every function here is its plain formula.
"""

from __future__ import annotations

import torch
from torch import Tensor, distributed


def world_size() -> int:
    """The number of ranks that share the batch."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def rank() -> int:
    """This process's number, from 0."""
    return distributed.get_rank() if world_size() > 1 else 0


def own_rows(count: int) -> slice:
    """The rows of this rank among ``count``, which is a multiple of the world size."""
    share = count // world_size()
    return slice(rank() * share, (rank() + 1) * share)


def all_reduce_mean(value: Tensor) -> Tensor:
    """The mean of a tensor over all ranks, without a gradient.   Any shape → the same."""
    mean = value.detach().clone()
    if world_size() > 1:
        distributed.all_reduce(mean)
        mean /= world_size()
    return mean


def all_gather_columns(value: Tensor) -> Tensor:
    """The columns of all ranks, without a gradient: [N, B / W] → [N, B]."""
    value = value.detach().contiguous()
    if world_size() == 1:
        return value
    parts = [torch.empty_like(value) for _ in range(world_size())]
    distributed.all_gather(parts, value)
    return torch.cat(parts, 1)


def masked_mean(value: Tensor, mask: Tensor) -> Tensor:
    """Σ value·mask / Σ mask over the whole batch, and 0 (not NaN) where the mask is empty.   Same shapes → scalar.

    Its mean over ranks is that ratio: each rank divides its own sum by the mean of the counts.
    """
    weight = mask.to(value.dtype)
    return (value * weight).sum() / all_reduce_mean(weight.sum()).clamp_min(1 / world_size())


def free_nats(divergence: Tensor, free: float) -> Tensor:
    """max(mean KL of the whole batch, free), as in Dreamer v1; no gradient below.   Scalar → scalar."""
    return torch.where(all_reduce_mean(divergence) > free, divergence, free)


def square_of_mean(mean: Tensor) -> Tensor:
    """g² of the whole batch's mean g, from this rank's.   Scalar → scalar.

    g (2m − g) has g² as its mean over ranks, and the gradient of g².
    """
    whole = all_reduce_mean(mean)
    return whole * (2 * mean - whole)
