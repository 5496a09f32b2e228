"""Distributions over one number for each state, as reward, critic and continue heads predict them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ccwm.ops.gaussian import unit_nll


class UnitGaussian(NamedTuple):
    """A Gaussian of variance 1."""

    mean: Tensor  # [...]

    def nll(self, target: Tensor) -> Tensor:
        """−log N(target; mean, 1) without its constant: [...] → [...]."""
        return unit_nll(self.mean, target)

    def kl(self, other: UnitGaussian) -> Tensor:
        """KL[self‖other] = ½ (μ − μ')²: [...] → [...]."""
        return unit_nll(self.mean, other.mean)

    def rows(self, part: slice | int) -> UnitGaussian:
        """Those of some rows of the first axis."""
        return UnitGaussian(self.mean[part])


class TwoHot(NamedTuple):
    """A categorical distribution over increasing bins; a target between two bins is a mixture of them."""

    logits: Tensor  # [..., bins]
    bins: Tensor  # [bins]

    @property
    def mean(self) -> Tensor:
        """Σ p_i b_i: [...]."""
        return (self.logits.softmax(-1) * self.bins).sum(-1)  # a product of matrices would be made in half precision

    def nll(self, target: Tensor) -> Tensor:
        """Cross entropy with the two bins around the target, weighted so that their mean is the target.   → [...]."""
        below, share = two_hot(target, self.bins)
        low = self.logits.gather(-1, below.unsqueeze(-1)).squeeze(-1)
        high = self.logits.gather(-1, below.unsqueeze(-1) + 1).squeeze(-1)
        return self.logits.logsumexp(-1) - torch.lerp(low, high, share)

    def kl(self, other: TwoHot) -> Tensor:
        """KL[self‖other] = Σ p_i (log p_i − log q_i): [...] → [...]."""
        log_p, log_q = self.logits.log_softmax(-1), other.logits.log_softmax(-1)
        return (log_p.exp() * (log_p - log_q)).sum(-1)

    def rows(self, part: slice | int) -> TwoHot:
        """Those of some rows of the first axis."""
        return TwoHot(self.logits[part], self.bins)


class Bernoulli(NamedTuple):
    """A yes or no."""

    logit: Tensor  # [...]

    @property
    def mean(self) -> Tensor:
        """The probability of a yes: [...]."""
        return self.logit.sigmoid()

    def nll(self, target: Tensor) -> Tensor:
        """−log Bernoulli(target; σ(logit)): [...] → [...]."""
        return functional.binary_cross_entropy_with_logits(self.logit, target, reduction="none")


Scalar = UnitGaussian | TwoHot
"""What a reward or a critic predicts; both have a mean, an nll and a kl."""


def two_hot(value: Tensor, bins: Tensor) -> tuple[Tensor, Tensor]:
    """The bin below each value and the weight of the bin above it; beyond the outer bins they take it all.   [...]."""
    value = value.clamp(bins[0], bins[-1])
    below = (torch.searchsorted(bins, value, right=True) - 1).clamp(0, len(bins) - 2)
    low, high = bins[below], bins[below + 1]
    return below, (value - low) / (high - low)
