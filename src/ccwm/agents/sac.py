"""Soft actor-critic from states: the networks of stable-baselines3, and how they act."""

from __future__ import annotations

import numpy as np
import torch
from gymnasium.spaces import Box
from stable_baselines3.sac.policies import Actor, SACPolicy
from torch import nn

from ccwm.agents.actions import finite_action
from ccwm.agents.learner import Learner
from ccwm.seeds import named_seed
from ccwm.settings.agent import AgentConfig


class SACLearner(Learner):
    """Actor, two critics, their slow copies, and the logarithm of the temperature α; there is no world model."""

    has_world_model = False
    acting_parts = ("networks.actor.",)

    def __init__(self, config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__(config, observation_shape=observation_shape, actions=actions)
        settings = config.sac
        self.networks = SACPolicy(
            Box(-np.inf, np.inf, observation_shape, np.float32),
            Box(-1.0, 1.0, (actions,), np.float32),
            lambda _: settings.learning_rate,
            net_arch=[settings.units] * settings.layers,
        )
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

    @torch.no_grad()
    def act(self, observation: np.ndarray) -> np.ndarray:
        """[n] → float32 [A] in [−1, 1]."""
        weights = next(self.actor.parameters())
        state = torch.from_numpy(observation).to(weights).unsqueeze(0)
        mean, log_std, _ = self.actor.get_action_dist_params(state)
        if self.explore:
            noise = self.random.standard_normal(mean.shape, dtype=np.float32)
            mean = mean + log_std.exp() * torch.from_numpy(noise).to(weights)
        return finite_action(torch.tanh(mean)[0])
