"""A state vector to an embedding and a feature back to a vector; both are perceptrons on the scale of symlog."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from ccwm.nets.mlp import Dense, dense, dense_layer
from ccwm.ops.symlog import symexp, symlog


class VectorEncoder(nn.Module):
    """e = q_φ(O): hidden layers on the vector."""

    def __init__(self, *, size: int, units: int, layers: int, activation: str, norm: bool, squash: bool) -> None:
        super().__init__()
        self.squash, self.outputs = squash, units
        widths = [size, *[units] * layers]
        pairs = itertools.pairwise(widths)
        self.layers = Dense(
            *(module for pair in pairs for module in dense_layer(*pair, activation=activation, norm=norm))
        )

    def target(self, observation: Tensor, dtype: torch.dtype) -> Tensor:
        """What is encoded and what the decoder is to predict: float32 [..., n] → [..., n]."""
        return symlog(observation.to(dtype)) if self.squash else observation.to(dtype)

    def to_observation(self, decoded: Tensor) -> Tensor:
        """The inverse of ``target``: [..., n] → float32 [..., n]."""
        return (symexp(decoded) if self.squash else decoded).float()

    def forward(self, vector: Tensor) -> Tensor:
        """[..., n] → [..., embed]."""
        embed: Tensor = self.layers(vector)
        return embed


class VectorDecoder(nn.Module):
    """The mean of p_θ(O|z)."""

    def __init__(self, *, feature: int, size: int, units: int, layers: int, activation: str, norm: bool) -> None:
        super().__init__()
        self.layers = dense(feature, units, size, layers, activation=activation, norm=norm)

    def forward(self, feature: Tensor) -> Tensor:
        """[..., F] → [..., n]."""
        vector: Tensor = self.layers(feature)
        return vector
