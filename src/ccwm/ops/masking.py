"""Averages over what a mask keeps."""

from __future__ import annotations

from torch import Tensor


def masked_mean(value: Tensor, mask: Tensor) -> Tensor:
    """Σ value·mask / Σ mask, and 0 (not NaN) where the mask is empty.   Same shapes → scalar."""
    weight = mask.to(value.dtype)
    return (value * weight).sum() / weight.sum().clamp_min(1)
