"""The reverse-action approximator."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ccwm.nets.mlp import dense


class ReverseAction(nn.Module):
    """ρ_ζ(z_{t+1}, z_t): the action that would lead from the later state back to the earlier one."""

    def __init__(
        self, *, feature: int, actions: int, units: int, activation: str, norm: bool = False, bounded: bool = True
    ) -> None:
        super().__init__()
        self.bounded = bounded
        self.layers = dense(2 * feature, units, actions, 2, activation=activation, norm=norm)

    def forward(self, later: Tensor, earlier: Tensor) -> Tensor:
        """[..., F], [..., F] → [..., A], in (−1, 1) where it is bounded."""
        out: Tensor = self.layers(torch.cat([later, earlier], -1))
        return torch.tanh(out) if self.bounded else out
