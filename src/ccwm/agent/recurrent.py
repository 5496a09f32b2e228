"""The trained agent's policy: the actor on filtered latent states."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ccwm.agent.world_model import WorldModel
from ccwm.nets.actor import Actor
from ccwm.seeds import named_seed
from ccwm.structs import LatentState


class RecurrentPolicy:
    """The actor on filtered latent states; greedy, or exploring with additive Gaussian noise that is clipped."""

    def __init__(self, world_model: WorldModel, actor: Actor, *, exploration: float | None = None) -> None:
        self.world_model, self.actor, self.exploration = world_model, actor, exploration
        self.streams: list[np.random.Generator] = []
        self.state: LatentState | None = None
        self.action: Tensor | None = None

    def reset(self, seeds: list[int]) -> None:
        """Begin an episode in each environment."""
        self.streams = [np.random.default_rng(named_seed("explore", seed)) for seed in seeds]
        self.state = self.action = None

    @torch.no_grad()
    def act(self, image: np.ndarray) -> np.ndarray:
        """uint8 [B, size, size, 3] → float32 [B, A] in [−1, 1].

        Greedy acting takes the posterior's mean and the actor's mode; exploring draws both and adds noise.
        """
        weight = self.world_model.rssm.prior_out.weight
        pixels = torch.from_numpy(image).to(weight.device).movedim(-1, -3)
        embed = self.world_model.embed(self.world_model.centre(pixels))
        if self.state is None or self.action is None:
            self.state = self.world_model.rssm.initial(embed)
            self.action = embed.new_zeros(len(image), self.actor.actions)
        self.state = self.world_model.rssm.correct(
            self.state, self.action, embed, self._noise(self.state.stoch.shape[-1], weight)
        )
        policy = self.actor(self.state.feature)
        width = policy.mean.shape[-1]
        self.action = torch.tanh(policy.sample(self._noise(width, weight)))
        if self.exploration is not None:
            self.action = (self.action + self.exploration * self._noise(width, weight)).clamp(-1, 1)
        return self.action.float().cpu().numpy()

    def _noise(self, width: int, like: Tensor) -> Tensor:
        if self.exploration is None:
            return like.new_zeros(len(self.streams), width)
        draws = np.stack([stream.standard_normal(width, dtype=np.float32) for stream in self.streams])
        return torch.from_numpy(draws).to(like)
