"""The forward terms: the negative free energy of the observations."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from ccwm.ops.gaussian import unit_nll


def observation_loss(decoded: Tensor, target: Tensor, *, axes: int) -> Tensor:
    """−log N(target; decoded, 1) without its constant, summed over the observation's axes, the last ones.   → [...]."""
    return unit_nll(decoded, target).flatten(-axes).sum(-1)


def continue_loss(logit: Tensor, continues: Tensor) -> Tensor:
    """−log Bernoulli(continues; σ(logit)), averaged.   [T, B] each → scalar."""
    return functional.binary_cross_entropy_with_logits(logit, continues)
