"""Distances between a retraced state and the original one; every function gives one number per state."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ccwm.ops.gaussian import unit_nll, wasserstein2
from ccwm.structs import Gaussian, LatentState


class Bisimulation(NamedTuple):
    """The bisimulation loss with its three terms, each [...]."""

    loss: Tensor
    l1: Tensor
    reward_kl: Tensor
    w2: Tensor


def bisimulation(
    original: LatentState,
    retraced: LatentState,
    *,
    reward_original: Tensor,
    reward_retraced: Tensor,
    next_original: Gaussian,
    next_retraced: Gaussian,
    discount: float,
) -> Bisimulation:
    """( ‖μ(z̃) − μ(ž)‖₁ − KL[R̂(z̃)‖R̂(ž)] − γ W₂ )², squared per state (Eq. 5).   [..., D] → [...].

    R̂ has unit variance, so that its KL is ½ (r̂(z̃) − r̂(ž))².
    """
    l1 = (original.mean - retraced.mean).abs().sum(-1)
    reward_kl = unit_nll(reward_original, reward_retraced)
    w2 = wasserstein2(next_original, next_retraced)
    return Bisimulation((l1 - reward_kl - discount * w2).square(), l1, reward_kl, w2)


def l2(original: LatentState, retraced: LatentState) -> Tensor:
    """‖z̃_t − ž_t‖₂² of the same t, over the whole feature.   [..., F] → [...]."""
    return (original.feature - retraced.feature).square().sum(-1)
