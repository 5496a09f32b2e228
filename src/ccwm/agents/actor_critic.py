"""Actor and critic, learned from dreams."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ccwm.agents.world_model import WorldModel
from ccwm.losses.actor_critic import critic_loss, dynamics_actor_loss, reinforce_actor_loss
from ccwm.nets.actor import Actor
from ccwm.nets.mlp import ScalarHead
from ccwm.ops.gaussian import tanh_log_prob
from ccwm.ops.returns import discount_weights, generalised_advantage, lambda_return
from ccwm.settings.agent import ActorCritic as ActorCriticSettings
from ccwm.structs import Gaussian, LatentState, stack


class Dream(NamedTuple):
    """H imagined steps of N rollouts; ``raw[t]``, before its tanh, is the action that led to ``feature[t]``."""

    feature: Tensor  # [H, N, F]
    raw: Tensor  # [H, N, A]
    policy: Gaussian  # [H, N, A], the distribution that ``raw`` was drawn from


class ActorCritic(nn.Module):
    """The actor, the critic, and how both learn from imagined rollouts."""

    def __init__(self, settings: ActorCriticSettings, *, feature: int, actions: int) -> None:
        super().__init__()
        self.settings = settings
        self.actor = Actor(
            feature=feature,
            actions=actions,
            units=settings.units,
            layers=settings.actor_layers,
            init_std=settings.init_std,
            min_std=settings.min_std,
            mean_scale=settings.mean_scale,
        )
        self.critic = ScalarHead(feature=feature, units=settings.units, layers=settings.critic_layers)

    def dream(self, start: LatentState, model: WorldModel, *, dynamics: Tensor, action: Tensor) -> Dream:
        """Imagine from [N, ·] with the noise of the dynamics [H, N, stoch] and of the actions [H, N, A]."""
        state, states, raws, policies = start, [], [], []
        for t in range(len(action)):
            # The actor learns by way of its actions, not by moving the features that it reads.
            policy = self.actor(state.feature.detach())
            raw = policy.sample(action[t])
            state = model.rssm.predict(state, torch.tanh(raw), dynamics[t])
            states.append(state)
            raws.append(raw)
            policies.append(policy)
        spread = Gaussian(*(torch.stack(parts) for parts in zip(*policies, strict=True)))
        return Dream(stack(states).feature, torch.stack(raws), spread)

    def losses(self, dream: Dream, model: WorldModel) -> dict[str, dict[str, Tensor]]:
        """What the actor and the critic minimise, by name, with diagnostics."""
        settings = self.settings
        value = self.critic(dream.feature)
        reward = model.reward(dream.feature)
        discount = model.discount(dream.feature, settings.discount)
        weight = discount_weights(discount)[:-1].detach()
        target = lambda_return(reward, discount, value, lam=settings.trace)
        log_prob = tanh_log_prob(dream.policy, dream.raw)  # [H, N]; row t belongs to the action into t
        entropy = -log_prob.mean()
        if settings.gradient == "dynamics":
            gain = dynamics_actor_loss(target, weight)
        else:
            advantage = generalised_advantage(reward, discount, value, lam=settings.trace)
            # The action taken *at* state t is the one that led to t + 1; as data, not as a path into the model.
            taken = tanh_log_prob(dream.policy, dream.raw.detach())[1:]
            gain = reinforce_actor_loss(taken, advantage, weight)
        return {
            "actor": {
                "loss": gain - settings.entropy * entropy,
                "entropy": entropy.detach(),
                "std": dream.policy.std.mean().detach(),
            },
            "critic": {
                "loss": critic_loss(value[:-1], target, weight),
                "value": value.mean().detach(),
                "return": target.mean().detach(),
                "reward": reward.mean().detach(),
            },
        }
