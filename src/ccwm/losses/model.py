"""The forward terms: the negative free energy of the observations."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ccwm.ops.gaussian import full, kl_divergence, unit_nll
from ccwm.ops.ranks import average
from ccwm.structs import Gaussian


def image_loss(decoded: Tensor, image: Tensor) -> Tensor:
    """−log N(image; decoded, 1) without its constant, summed over pixels.   [..., C, size, size] → [...]."""
    return unit_nll(decoded, image).flatten(-3).sum(-1)


def kl_with_free_nats(posterior: Gaussian, prior: Gaussian, *, free_nats: float) -> tuple[Tensor, Tensor]:
    """(max(mean KL, free nats), mean KL): averaged over all ranks, then clamped, as Dreamer v1 does.

    [T, B, D] → two scalars.
    """
    divergence = average(kl_divergence(posterior, prior).mean())
    return divergence.clamp_min(free_nats), divergence


def continue_loss(logit: Tensor, continues: Tensor) -> Tensor:
    """−log Bernoulli(continues; σ(logit)), averaged.   [T, B] each → scalar."""
    return functional.binary_cross_entropy_with_logits(full(logit), continues)


def centred(image: Tensor, dtype: torch.dtype) -> Tensor:
    """Bytes 0 … 255 as numbers −0.5 … 0.5."""
    return image.to(dtype) / 255 - 0.5
