"""Actor and critic, learned in imagination."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ccwm.agents.precision import cast_outputs
from ccwm.agents.world_model import WorldModel
from ccwm.losses.actor_critic import critic_loss, dynamics_actor_loss, reinforce_actor_loss
from ccwm.nets.actor import Actor
from ccwm.nets.mlp import ScalarHead
from ccwm.ops.gaussian import tanh_log_prob
from ccwm.ops.returns import discount_weights, generalised_advantage, lambda_return
from ccwm.settings.agent import ActorCritic as ActorCriticSettings
from ccwm.structs import Gaussian, LatentState, Terms, stack


class Imagined(NamedTuple):
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
        cast_outputs(self.actor, self.critic)

    def imagine(self, start: LatentState, model: WorldModel, *, noise: Tensor, action_noise: Tensor) -> Imagined:
        """Roll the model out from [N, ·] with the noise of the dynamics [H, N, stoch] and of the actions [H, N, A]."""
        state, states, raws, policies = start, [], [], []
        for t in range(len(action_noise)):
            policy = self.actor(state.feature.detach())  # the actor learns through its actions, not through its inputs
            raw = policy.sample(action_noise[t])
            state = model.predict(state, torch.tanh(raw), noise[t])
            states.append(state)
            raws.append(raw)
            policies.append(policy)
        policy = Gaussian(*(torch.stack(parts) for parts in zip(*policies, strict=True)))
        return Imagined(stack(states).feature, torch.stack(raws), policy)

    def loss(self, imagined: Imagined, model: WorldModel) -> Terms:
        """The losses of actor and critic, and what they are made of."""
        settings = self.settings
        value, reward = self.critic(imagined.feature), model.reward(imagined.feature)
        discount = model.discount(imagined.feature, settings.discount)
        weight = discount_weights(discount)[:-1].detach()
        target = lambda_return(reward, discount, value, lam=settings.return_lambda)
        log_prob = tanh_log_prob(imagined.policy, imagined.raw)  # [H, N]; row t belongs to the action into t
        entropy = -log_prob.mean()
        if settings.gradient == "dynamics":
            gain = dynamics_actor_loss(target, weight)
        else:
            advantage = generalised_advantage(reward, discount, value, lam=settings.return_lambda)
            # The action taken *at* state t is the one that led to t + 1; as data, not as a path into the model.
            taken = tanh_log_prob(imagined.policy, imagined.raw.detach())[1:]
            gain = reinforce_actor_loss(taken, advantage, weight)
        losses = {"actor": gain - settings.entropy * entropy, "critic": critic_loss(value[:-1], target, weight)}
        metrics = {
            "actor/entropy": entropy,
            "actor/std": imagined.policy.std.mean(),
            "critic/value": value.mean(),
            "critic/return": target.mean(),
            "critic/reward": reward.mean(),
        }
        return Terms(losses, {name: metric.detach() for name, metric in metrics.items()})
