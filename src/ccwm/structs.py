"""The named structures that every layer passes around, with their shapes.

Axes: B batch, T time, H imagined horizon, A action, F feature. ``action[t]`` is the action that led to
``observation[t]``; ``reward[t]`` came with ``observation[t]``; ``action[0]`` is zero and ``is_first[0]`` is true at an
episode's start; ``continues[t]`` is 0 only where the episode terminated (a time limit is no termination).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """B windows of T consecutive steps, time first."""

    observation: Tensor  # [T, B, *observation], as stored: uint8 [size, size, 3] pixels
    action: Tensor  # [T, B, A]; action[t] led to observation[t]
    reward: Tensor  # [T, B]
    is_first: Tensor  # [T, B] bool
    continues: Tensor  # [T, B]
    position: Tensor  # [T, B] int64, the step's place in its episode
    episode_length: Tensor  # [T, B] int64, that episode's length L
    irreversible: Tensor  # [T, B] bool


class Terms(NamedTuple):
    """What a part of the learner returns: losses to be minimised, and metrics to be logged, each a scalar by name."""

    losses: dict[str, Tensor]
    metrics: dict[str, Tensor]

    def plus(self, other: Terms) -> Terms:
        """Both: losses of one name are added up, metrics have different names."""
        losses = dict(self.losses)
        for name, loss in other.losses.items():
            losses[name] = losses[name] + loss if name in losses else loss
        return Terms(losses, {**self.metrics, **other.metrics})


class Gaussian(NamedTuple):
    """A diagonal Gaussian over the last axis."""

    mean: Tensor
    std: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        """Reparameterised draw: mean + std · noise, with standard normal noise of the same shape."""
        return self.mean + self.std * noise


class LatentState(NamedTuple):
    """An RSSM state: a deterministic part and a sampled diagonal Gaussian part."""

    deter: Tensor  # [..., deter]
    stoch: Tensor  # [..., stoch]
    mean: Tensor  # [..., stoch]
    std: Tensor  # [..., stoch]

    @property
    def feature(self) -> Tensor:
        """What every head reads: concat(stoch, deter), [..., F]."""
        return torch.cat([self.stoch, self.deter], -1)

    @property
    def gaussian(self) -> Gaussian:
        """The distribution that ``stoch`` was drawn from."""
        return Gaussian(self.mean, self.std)

    def map(self, function: Callable[[Tensor], Tensor]) -> LatentState:
        """Apply the same function to every part: ``state.map(lambda part: part[1:])`` drops the first step."""
        return LatentState(*map(function, self))

    def detach(self) -> LatentState:
        """The same state, cut off from the graph that made it."""
        return self.map(Tensor.detach)

    def flatten(self) -> LatentState:
        """Fold all leading axes into one: [T, B, ·] → [T·B, ·]."""
        return self.map(lambda part: part.flatten(0, -2))

    def fold(self, *shape: int) -> LatentState:
        """Undo ``flatten``: [N, ·] → [*shape, ·]."""
        return self.map(lambda part: part.reshape(*shape, part.shape[-1]))


def stack(states: Sequence[LatentState]) -> LatentState:
    """Stack states along a new first axis."""
    return LatentState(*(torch.stack(parts) for parts in zip(*states, strict=True)))
