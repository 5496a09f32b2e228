"""The trained agent's policy: the actor on filtered latent states."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ccwm.agents.actions import finite_action
from ccwm.agents.world_model import WorldModel
from ccwm.seeds import named_seed
from ccwm.structs import Gaussian, LatentState


class Actor(Protocol):
    """π(a|z), as a Gaussian before a tanh."""

    actions: int

    def __call__(self, feature: Tensor) -> Gaussian:
        """[N, F] → [N, A]."""


class RecurrentPolicy:
    """The actor on the posterior of one environment; greedy, or exploring with additive Gaussian noise that is clipped.

    Several environments have a policy each: a product of matrices differs in its last bits between batch sizes, and an
    agent's actions must not depend on how many others act beside it.
    """

    def __init__(self, world_model: WorldModel, actor: Actor, *, exploration: float | None = None) -> None:
        self.world_model, self.actor, self.exploration = world_model, actor, exploration
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start an episode; all randomness in it is a function of the seed."""
        self.random = np.random.default_rng(named_seed("explore", seed))
        self.state: LatentState | None = None  # [1, ·]
        self.action: Tensor | None = None  # [1, A]

    @torch.no_grad()
    def act(self, observation: np.ndarray) -> np.ndarray:
        """[*observation] → float32 [A] in [−1, 1].

        Greedy acting takes the posterior's mean and the actor's mode; exploring draws both and adds noise.
        """
        model = self.world_model
        target = model.target(torch.from_numpy(observation).to(model.device).unsqueeze(0))
        if self.state is None or self.action is None:
            like = torch.zeros(1, self.actor.actions, dtype=model.dtype, device=model.device)
            self.state, self.action = model.rssm.initial(like), like
        noise = self._noise(self.state.stoch)
        self.state = model.rssm.correct(self.state, self.action, model.embed(target), noise)
        policy = self.actor(self.state.feature)
        self.action = torch.tanh(policy.sample(self._noise(policy.mean)))
        if self.exploration is not None:
            self.action = (self.action + self.exploration * self._noise(policy.mean)).clamp(-1, 1)
        return finite_action(self.action[0])

    def _noise(self, like: Tensor) -> Tensor:
        if self.exploration is None:
            return torch.zeros_like(like)
        return torch.from_numpy(self.random.standard_normal(like.shape, dtype=np.float32)).to(like)
