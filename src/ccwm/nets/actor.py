"""The policy network."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ccwm.nets.mlp import dense
from ccwm.structs import Gaussian


class Actor(nn.Module):
    """π(a|z): a Gaussian before a tanh."""

    def __init__(
        self,
        *,
        feature: int,
        actions: int,
        units: int,
        layers: int,
        init_std: float,
        min_std: float,
        mean_scale: float = 5.0,
        activation: str = "elu",
        norm: bool = False,
    ) -> None:
        super().__init__()
        self.actions = actions
        self.layers = dense(feature, units, 2 * actions, layers, activation=activation, norm=norm)
        self.raw_init_std = math.log(math.expm1(init_std))  # the inverse of softplus
        self.min_std, self.mean_scale = min_std, mean_scale

    def forward(self, feature: Tensor) -> Gaussian:
        """The Gaussian before the tanh: [..., F] → [..., A]."""
        mean, std = self.layers(feature).chunk(2, -1)
        mean = self.mean_scale * torch.tanh(mean / self.mean_scale)  # so that no action saturates beyond recall
        return Gaussian(mean, functional.softplus(std + self.raw_init_std) + self.min_std)

    def greedy(self, feature: Tensor) -> Tensor:
        """The mode's action: [..., F] → [..., A] in (−1, 1)."""
        return torch.tanh(self(feature).mean)
