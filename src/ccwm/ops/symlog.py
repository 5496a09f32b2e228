"""A squashed scale on which small and large numbers are equally easy to predict."""

from __future__ import annotations

import torch
from torch import Tensor


def symlog(value: Tensor) -> Tensor:
    """sign(x) · log(1 + |x|), elementwise."""
    return value.sign() * value.abs().log1p()


def symexp(value: Tensor) -> Tensor:
    """sign(x) · (exp(|x|) − 1), elementwise: the inverse of ``symlog``."""
    return value.sign() * value.abs().expm1()


def symexp_bins(count: int, limit: float) -> Tensor:
    """Bins that are evenly spaced between ±limit on the scale of ``symlog``.   → [count]."""
    return symexp(torch.linspace(-limit, limit, count))
