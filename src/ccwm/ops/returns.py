"""Returns, advantages and weights along an imagined rollout; time is the first axis."""

from __future__ import annotations

import torch
from torch import Tensor


def lambda_return(reward: Tensor, discount: Tensor, value: Tensor, *, lam: float) -> Tensor:
    """G_t = r_t + γ_t [(1 − λ) v_{t+1} + λ G_{t+1}],  G_{H−1} = v_{H−1}.   [H, N] each → [H − 1, N].

    The last step only bootstraps, so it has no return of its own.
    """
    following = value[-1]
    targets = []
    for t in reversed(range(len(reward) - 1)):
        following = reward[t] + discount[t] * ((1 - lam) * value[t + 1] + lam * following)
        targets.append(following)
    return torch.stack(targets[::-1])


def generalised_advantage(reward: Tensor, discount: Tensor, value: Tensor, *, lam: float) -> Tensor:
    """A_t = δ_t + γ_t λ A_{t+1},  δ_t = r_t + γ_t v_{t+1} − v_t.   [H, N] each → [H − 1, N]."""
    return lambda_return(reward, discount, value, lam=lam) - value[:-1]


def discount_weights(discount: Tensor) -> Tensor:
    """w_t = Π_{k<t} γ_k, the discounted probability that the episode reaches step t.   [H, N] → [H, N], w_0 = 1."""
    return torch.cat([torch.ones_like(discount[:1]), discount[:-1]]).cumprod(0)
