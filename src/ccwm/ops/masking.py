"""Averages over what a mask keeps."""

from __future__ import annotations

from torch import Tensor

from ccwm.ops.ranks import average, world_size


def masked_mean(value: Tensor, mask: Tensor) -> Tensor:
    """Σ value·mask / Σ mask over all ranks, and 0 (not NaN) where the mask is empty.   Same shapes → scalar."""
    weight = mask.to(value.dtype)
    total, count = average((value * weight).sum()), average(weight.sum())
    return total / count.clamp_min(1 / world_size())
