"""Losses of the actor and the critic along imagined rollouts [H, N]."""

from __future__ import annotations

from torch import Tensor

from ccwm.ops.scalars import Scalar


def dynamics_actor_loss(target: Tensor, weight: Tensor) -> Tensor:
    """−mean(w_t G_t), with the gradient through the dynamics.   [H − 1, N] each → scalar."""
    return -(weight * target).mean()


def reinforce_actor_loss(log_prob: Tensor, advantage: Tensor, weight: Tensor) -> Tensor:
    """−mean(w_t A_t log π(a_t|s_t)), with a stop-gradient on the advantage.   [H − 1, N] each → scalar."""
    return -(weight * advantage.detach() * log_prob).mean()


def critic_loss(value: Scalar, target: Tensor, weight: Tensor) -> Tensor:
    """−mean(w_t log p(G_t; v_t)) without its constant, with a stop-gradient on the target.   [H − 1, N] → scalar."""
    return (weight * value.nll(target.detach())).mean()
