"""Soft actor-critic: the networks of stable-baselines3, and how they act on states or on features."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from gymnasium.spaces import Box
from stable_baselines3.sac.policies import Actor, SACPolicy
from torch import Tensor, nn

from ccwm.agents.actions import finite_action
from ccwm.agents.learner import Learner
from ccwm.seeds import named_seed
from ccwm.settings.agent import SAC, AgentConfig
from ccwm.structs import Gaussian


class Soft(Protocol):
    """A learner that acts by SAC."""

    config: AgentConfig
    actions: int
    networks: SACPolicy
    log_temperature: nn.Parameter


def build_networks(settings: SAC, *, inputs: int, actions: int) -> SACPolicy:
    """Actor, two critics and their slow copies, untrained."""
    return SACPolicy(
        Box(-np.inf, np.inf, (inputs,), np.float32),
        Box(-1.0, 1.0, (actions,), np.float32),
        lambda _: settings.learning_rate,
        net_arch=[settings.units] * settings.layers,
    )


class SoftControl:
    """SAC's networks on the features of latent states."""

    def __init__(self, networks: SACPolicy, actions: int) -> None:
        self.networks, self.actions = networks, actions

    def __call__(self, feature: Tensor) -> Gaussian:
        """The Gaussian before the tanh: [N, F] → [N, A]."""
        mean, log_std, _ = self.networks.actor.get_action_dist_params(feature)
        return Gaussian(mean, log_std.exp())

    def greedy(self, feature: Tensor) -> Tensor:
        """The mode's action: [N, F] → [N, A] in (−1, 1)."""
        return torch.tanh(self(feature).mean)

    def value(self, feature: Tensor) -> Tensor:
        """min(Q₁, Q₂) at the mode's action: [..., F] → [...]."""
        flat = feature.flatten(0, -2)
        return torch.cat(self.networks.critic(flat, self.greedy(flat)), 1).amin(1).reshape(feature.shape[:-1])


class SACLearner(Learner):
    """Actor, two critics, their slow copies, and the logarithm of the temperature α; there is no world model."""

    has_world_model = False
    acting_parts = ("networks.actor.",)

    def __init__(self, config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__(config, observation_shape=observation_shape, actions=actions)
        self.networks = build_networks(config.sac, inputs=observation_shape[0], actions=actions)
        self.log_temperature = nn.Parameter(torch.zeros(1))  # α = 1

    def policy(self, *, explore: bool = False) -> StatePolicy:
        """The actor on the observation alone: its mode, or draws from it."""
        return StatePolicy(self.networks.actor, explore=explore)


class StatePolicy:
    """tanh(μ(s) + σ(s) ε) in one environment, with ε = 0 where it does not explore."""

    def __init__(self, actor: Actor, *, explore: bool) -> None:
        self.actor, self.explore = actor, explore
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start an episode; all randomness in it is a function of the seed."""
        self.random = np.random.default_rng(named_seed("explore", seed))

    def feature(self, observation: np.ndarray) -> Tensor:
        """What the actor reads, the state itself: [n] → [1, n]."""
        return torch.from_numpy(observation).to(next(self.actor.parameters())).unsqueeze(0)

    @torch.no_grad()
    def act(self, observation: np.ndarray) -> np.ndarray:
        """[*observation] → float32 [A] in [−1, 1]."""
        mean, log_std, _ = self.actor.get_action_dist_params(self.feature(observation))
        if self.explore:
            noise = self.random.standard_normal(mean.shape, dtype=np.float32)
            mean = mean + log_std.exp() * torch.from_numpy(noise).to(mean)
        return finite_action(torch.tanh(mean)[0])
