"""Deterministic dynamics, forward or backward."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ccwm.nets.mlp import dense


class Dynamics(nn.Module):
    """z + f(z, a): the state that follows an action, or the one before it, as a point."""

    def __init__(self, *, feature: int, actions: int, units: int, activation: str, norm: bool = False) -> None:
        super().__init__()
        self.layers = dense(feature + actions, units, feature, 2, activation=activation, norm=norm)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """[..., F], [..., A] → [..., F]."""
        change: Tensor = self.layers(torch.cat([state, action], -1))
        return state + change
