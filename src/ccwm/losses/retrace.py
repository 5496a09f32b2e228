"""Distances between a retraced state and the original one; every function gives one number per state."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ccwm.ops.gaussian import wasserstein2
from ccwm.ops.scalars import Scalar
from ccwm.structs import Gaussian, LatentState


class Comparison(NamedTuple):
    """How far a retraced state is from the original one, by three measures, each [...]."""

    l1: Tensor
    reward_kl: Tensor
    w2: Tensor


def compare(
    original: LatentState,
    retraced: LatentState,
    *,
    reward_original: Scalar,
    reward_retraced: Scalar,
    next_original: Gaussian,
    next_retraced: Gaussian,
) -> Comparison:
    """‖μ(z̃) − μ(ž)‖₁, KL[R̂(z̃)‖R̂(ž)] and W₂ of the next states.   [..., D] → [...]."""
    return Comparison(
        l1=l1(original, retraced),
        reward_kl=reward_original.kl(reward_retraced),  # type: ignore[arg-type]  # both are of one head
        w2=wasserstein2(next_original, next_retraced),
    )


def bisimulation(compared: Comparison, *, discount: float) -> Tensor:
    """( ‖μ(z̃) − μ(ž)‖₁ − KL[R̂(z̃)‖R̂(ž)] − γ W₂ )², squared per state (Eq. 5).   [...] → [...].

    It is 0 wherever ‖·‖₁ = KL + γ W₂, not only where ž = z̃.
    """
    return bisimulation_gap(compared, discount=discount).square()


def bisimulation_gap(compared: Comparison, *, discount: float) -> Tensor:
    """‖μ(z̃) − μ(ž)‖₁ − KL[R̂(z̃)‖R̂(ž)] − γ W₂, before it is squared.   [...] → [...]."""
    return compared.l1 - compared.reward_kl - discount * compared.w2


def metric(compared: Comparison, *, discount: float) -> Tensor:
    """‖μ(z̃) − μ(ž)‖₁ + KL[R̂(z̃)‖R̂(ž)] + γ W₂, which is 0 only where all three agree.   [...] → [...]."""
    return compared.l1 + compared.reward_kl + discount * compared.w2


def l1(original: LatentState, retraced: LatentState) -> Tensor:
    """‖μ(z̃) − μ(ž)‖₁.   [..., D] → [...]."""
    return (original.mean - retraced.mean).abs().sum(-1)


def l2(original: LatentState, retraced: LatentState) -> Tensor:
    """‖z̃_t − ž_t‖₂² of the same t, over the whole feature.   [..., F] → [...]."""
    return (original.feature - retraced.feature).square().sum(-1)
