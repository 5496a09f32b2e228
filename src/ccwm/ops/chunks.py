"""Means over many rows, differentiated a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def mean_in_chunks(
    loss: Callable[[Tensor, Tensor], Tensor], feature: Tensor, target: Tensor, *, weights: Sequence[Tensor], rows: int
) -> Tensor:
    """``loss(feature, target).mean()`` where each row has a loss of its own; one chunk's graph alone is ever alive.

    Its gradient is computed on the way forward, for the feature and for all ``weights`` that the loss reads, and the
    way back only scales it.   [N, F], [N, …] → scalar.
    """
    mean: Tensor = _MeanInChunks.apply(loss, rows, target, feature, *weights)  # type: ignore[no-untyped-call]
    return mean


class _MeanInChunks(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        loss: Callable[[Tensor, Tensor], Tensor],
        rows: int,
        target: Tensor,
        feature: Tensor,
        *weights: Tensor,
    ) -> Tensor:
        total = feature.new_zeros(())
        feature_slopes, weight_slopes = torch.empty_like(feature), [torch.zeros_like(weight) for weight in weights]
        chunks = (torch.split(part, rows) for part in (feature, target, feature_slopes))
        for some, seen, slope in zip(*chunks, strict=True):
            with torch.enable_grad():
                leaf = some.detach().requires_grad_()
                part = loss(leaf, seen).sum() / len(feature)
            slopes = torch.autograd.grad(part, [leaf, *weights])
            total += part.detach()
            slope.copy_(slopes[0])
            for kept, added in zip(weight_slopes, slopes[1:], strict=True):
                kept += added
        ctx.save_for_backward(feature_slopes, *weight_slopes)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        return (None, None, None, *(scale * slope for slope in ctx.saved_tensors))
