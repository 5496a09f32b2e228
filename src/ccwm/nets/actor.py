"""The policy network."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ccwm.nets.mlp import dense
from ccwm.structs import Gaussian

MEAN_SCALE = 5.0
"""The mean before the tanh is squashed into ± this, so that an action cannot saturate beyond recall."""


class Actor(nn.Module):
    """π(a|z): a Gaussian before a tanh."""

    def __init__(self, *, feature: int, actions: int, units: int, layers: int, init_std: float, min_std: float) -> None:
        super().__init__()
        self.actions = actions
        self.layers = dense(feature, units, 2 * actions, layers, nn.ELU)
        self.raw_init_std = math.log(math.expm1(init_std))  # the inverse of softplus
        self.min_std = min_std

    def forward(self, feature: Tensor) -> Gaussian:
        """The Gaussian before the tanh: [..., F] → [..., A]."""
        mean, std = self.layers(feature).chunk(2, -1)
        mean = MEAN_SCALE * torch.tanh(mean / MEAN_SCALE)
        return Gaussian(mean, functional.softplus(std + self.raw_init_std) + self.min_std)

    def greedy(self, feature: Tensor) -> Tensor:
        """The mode's action: [..., F] → [..., A] in (−1, 1)."""
        return torch.tanh(self(feature).mean)
