"""A running mean that is part of an agent's state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

MEMORY = 100
"""Updates over which the mean is taken, once there have been as many."""


class RunningMean(nn.Module):
    """The mean of one number an update: a plain average at first, then an exponential one over ``MEMORY`` updates."""

    def __init__(self) -> None:
        super().__init__()
        self.num_updates: Tensor
        self.mean: Tensor
        self.register_buffer("num_updates", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(()))

    @torch.no_grad()
    def follow(self, value: Tensor) -> None:
        """Take a scalar into the mean."""
        self.num_updates += 1
        self.mean += (value.to(self.mean) - self.mean) / self.num_updates.clamp_max(MEMORY)
