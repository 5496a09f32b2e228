"""Closed forms of diagonal Gaussians; every function sums over the last axis."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ccwm.structs import Gaussian


def kl_divergence(p: Gaussian, q: Gaussian) -> Tensor:
    """KL[p‖q] = Σ log(σ_q/σ_p) + (σ_p² + (μ_p − μ_q)²) / (2σ_q²) − ½.   [..., D] → [...]."""
    variance_ratio = (p.std / q.std).square()
    distance = ((p.mean - q.mean) / q.std).square()
    return 0.5 * (variance_ratio + distance - 1 - variance_ratio.log()).sum(-1)


def wasserstein2(p: Gaussian, q: Gaussian) -> Tensor:
    """The paper's closed form W₂ = ‖μ_p − μ_q‖₂² + ‖σ_p − σ_q‖₂² (Eq. 7, no root taken).   [..., D] → [...]."""
    return (p.mean - q.mean).square().sum(-1) + (p.std - q.std).square().sum(-1)


def log_prob(p: Gaussian, value: Tensor) -> Tensor:
    """log p(value), summed over the last axis.   [..., D] → [...]."""
    scaled = (value - p.mean) / p.std
    return (-0.5 * scaled.square() - p.std.log() - 0.5 * math.log(2 * math.pi)).sum(-1)


def unit_nll(mean: Tensor, value: Tensor) -> Tensor:
    """−log N(value; mean, 1) without its constant: ½ (value − mean)², elementwise."""
    return 0.5 * (value - mean).square()


def tanh_log_prob(p: Gaussian, raw: Tensor) -> Tensor:
    """log-density of tanh(raw) where raw ~ p.   [..., A] → [...]."""
    # log(1 − tanh²x) = 2 (log 2 − x − softplus(−2x)), which does not overflow.
    squash = 2 * (math.log(2) - raw - torch.nn.functional.softplus(-2 * raw))
    return log_prob(p, raw) - squash.sum(-1)
