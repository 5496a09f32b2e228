"""Which states stay in the retrace loss; time is the first axis, and True means kept."""

from __future__ import annotations

import torch
from torch import Tensor

VALUE_FLOOR = 1e-2
"""ε: a windowed value closer to zero than this is compared as if it were this large, so that noise around zero, with
an absolute change below η · ε, is never called sudden."""
LEAST_SUDDEN = 1e-2
"""The least η that `auto` takes: where a value hardly changes, a change of a hundredth does not count as sudden."""


def relative_changes(value: Tensor, *, window: int) -> Tensor:
    """Δ_i = |Q̄_{i+1} − Q̄_i| / max(|Q̄_i|, ε),  Q̄_i = mean(V_i … V_{i+S−1}).   [T, B] → [max(T − S, 0), B]."""
    if len(value) <= window:
        return value.new_zeros(0, value.shape[1])
    mean = value.unfold(0, window, 1).mean(-1)  # [T − S + 1, B]
    return (mean[1:] - mean[:-1]).abs() / mean[:-1].abs().clamp_min(VALUE_FLOOR)


def outlier_threshold(median: Tensor) -> Tensor:
    """η = 4 · median(Δ): Tukey's fence, and never below ``LEAST_SUDDEN``.   scalar → scalar.

    Values rise about as often as they fall, so that the quartiles of the signed changes are ± the median of Δ, and the
    fence of a box plot, Q₃ + 1.5 · (Q₃ − Q₁), is four medians: 2.7 standard deviations of normal changes.
    """
    return (4 * median).clamp_min(LEAST_SUDDEN)


def adaptive_mask(value: Tensor, *, threshold: float | Tensor, window: int, lookback: int) -> Tensor:
    """Section 3.3: where Δ_i > η, the change is at t = i + S and states t − τ … t leave.   [T, B] → bool [T, B]."""
    kept = torch.ones_like(value, dtype=torch.bool)
    sudden = torch.zeros_like(kept)
    sudden[window:] = relative_changes(value, window=window) > threshold  # row i lands on its newest step, i + S
    for back in range(min(lookback, len(value) - 1) + 1):
        kept[: len(value) - back] &= ~sudden[back:]
    return kept


def algorithm1_mask(value: Tensor, *, threshold: float | Tensor, window: int) -> Tensor:
    """Algorithm 1, line 9, to the letter: M_k = ∨_{j=k−S}^{k} (Δ_j < η).   [T, B] → bool [T, B].

    A state none of whose Δ_j exists is kept: no comparison covers it.
    """
    calm = relative_changes(value, window=window) < threshold
    kept = torch.ones_like(value, dtype=torch.bool)
    for k in range(len(value)):
        span = calm[max(k - window, 0) : k + 1]
        if len(span):
            kept[k] = span.any(0)
    return kept


def scheduled_mask(position: Tensor, episode_length: Tensor, *, final_share: float) -> Tensor:
    """Appendix C: the last share p of every episode leaves.   int [T, B] each → bool [T, B]."""
    return position < (1 - final_share) * episode_length


def annealed_share(env_steps: int, *, initial: float, steps: int) -> float:
    """p falls linearly from ``initial`` at 0 to 0 at ``steps`` environment steps."""
    return initial * max(0.0, 1 - env_steps / steps)


def kept_pairs(kept: Tensor, is_first: Tensor) -> Tensor:
    """A transition counts when both its ends are kept and no reset lies between.   [T, B] → bool [T − 1, B]."""
    return kept[1:] & kept[:-1] & ~is_first[1:]
