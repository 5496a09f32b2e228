"""The trained agent's policy: the actor on filtered latent states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ccwm.agents.world_model import WorldModel
from ccwm.nets.actor import Actor
from ccwm.seeds import named_seed
from ccwm.structs import LatentState


class RecurrentPolicy:
    """The actor on filtered latent states; greedy, or exploring with additive Gaussian noise that is clipped.

    Rows are computed one by one: a product of matrices differs in its last bits between batch sizes, and what an
    environment's agent does must not depend on how many others act beside it.
    """

    def __init__(self, world_model: WorldModel, actor: Actor, *, exploration: float | None = None) -> None:
        self.world_model, self.actor, self.exploration = world_model, actor, exploration
        self.rows: list[_Row] = []

    def reset(self, seeds: list[int]) -> None:
        """Begin an episode in each environment."""
        self.rows = [_Row(np.random.default_rng(named_seed("explore", seed))) for seed in seeds]

    @torch.no_grad()
    def act(self, image: np.ndarray) -> np.ndarray:
        """uint8 [B, size, size, 3] → float32 [B, A] in [−1, 1].

        Greedy acting takes the posterior's mean and the actor's mode; exploring draws both and adds noise.
        """
        pairs = zip(self.rows, image, strict=True)
        return np.concatenate([self._act_row(row, single[None]).float().cpu().numpy() for row, single in pairs])

    def _act_row(self, row: _Row, image: np.ndarray) -> Tensor:
        """One environment's action: uint8 [1, size, size, 3] → [1, A]."""
        weight = self.world_model.rssm.prior_out.weight
        pixels = torch.from_numpy(image).to(weight.device).movedim(-1, -3)
        embed = self.world_model.embed(self.world_model.centre(pixels))
        if row.state is None or row.action is None:
            row.state = self.world_model.rssm.initial(embed)
            row.action = embed.new_zeros(1, self.actor.actions)
        row.state = self.world_model.rssm.correct(
            row.state, row.action, embed, self._noise(row, row.state.stoch.shape[-1], weight)
        )
        policy = self.actor(row.state.feature)
        width = policy.mean.shape[-1]
        row.action = torch.tanh(policy.sample(self._noise(row, width, weight)))
        if self.exploration is not None:
            row.action = (row.action + self.exploration * self._noise(row, width, weight)).clamp(-1, 1)
        return row.action

    def _noise(self, row: _Row, width: int, like: Tensor) -> Tensor:
        if self.exploration is None:
            return like.new_zeros(1, width)
        return torch.from_numpy(row.stream.standard_normal((1, width), dtype=np.float32)).to(like)


@dataclass
class _Row:
    """One environment's episode as its agent knows it."""

    stream: np.random.Generator
    state: LatentState | None = None  # [1, ·]
    action: Tensor | None = None  # [1, A]
