"""Actor and critic, learned in imagination."""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ccwm.agents.distributed import all_gather_columns
from ccwm.agents.precision import cast_outputs
from ccwm.agents.running import RunningMean
from ccwm.agents.world_model import WorldModel
from ccwm.losses.actor_critic import critic_loss, dynamics_actor_loss, reinforce_actor_loss
from ccwm.nets.actor import Actor
from ccwm.nets.mlp import Head
from ccwm.ops.gaussian import tanh_log_prob
from ccwm.ops.returns import discount_weights, generalised_advantage, lambda_return
from ccwm.settings.agent import ActorCritic as ActorCriticSettings
from ccwm.settings.agent import Model
from ccwm.structs import Gaussian, LatentState, Terms


class Imagined(NamedTuple):
    """H imagined steps of N rollouts; ``raw[t]``, before its tanh, is the action that led to ``feature[t]``."""

    feature: Tensor  # [H, N, F]
    raw: Tensor  # [H, N, A]
    policy: Gaussian  # [H, N, A], the distribution that ``raw`` was drawn from


class ActorCritic(nn.Module):
    """The actor, the critic, and how both learn from imagined rollouts."""

    def __init__(self, settings: ActorCriticSettings, model: Model, *, feature: int, actions: int) -> None:
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
            activation=settings.actor_activation,
            norm=settings.layer_norm,
        )
        self.critic = Head(
            settings.critic_head,
            feature=feature,
            units=settings.units,
            layers=settings.critic_layers,
            activation=settings.critic_activation,
            norm=settings.layer_norm,
            zero=model.zero_heads,
            bins=model.bins,
            limit=model.bin_limit,
        )
        cast_outputs(self.actor, self.critic)
        self.slow_critic: Head | None = None
        self.return_range = RunningMean() if settings.normalise_returns else None

    def copy_critic(self) -> None:
        """Start the slow critic, where there is one, as a copy of the critic; call it once the weights are drawn."""
        if self.settings.slow_critic is not None:
            self.slow_critic = copy.deepcopy(self.critic).requires_grad_(False)

    @torch.no_grad()
    def follow_critic(self) -> None:
        """Move the slow critic a step towards the critic; to be called after each step of the optimiser."""
        if self.slow_critic is not None and self.settings.slow_critic is not None:
            for slow, fast in zip(self.slow_critic.parameters(), self.critic.parameters(), strict=True):
                slow.lerp_(fast, self.settings.slow_critic)

    def greedy(self, feature: Tensor) -> Tensor:
        """The mode's action: [..., F] → [..., A] in (−1, 1)."""
        return self.actor.greedy(feature)

    def value(self, feature: Tensor) -> Tensor:
        """V: [..., F] → [...]."""
        value: Tensor = self.critic(feature).mean
        return value

    def imagine(self, start: LatentState, model: WorldModel, *, noise: Tensor, action_noise: Tensor) -> Imagined:
        """Roll the model out from [N, ·] with the noise of the dynamics [H, N, stoch] and of the actions [H, N, A]."""
        state, feature = start, start.feature
        features, raws, policies = [], [], []
        for t in range(len(action_noise)):
            policy = self.actor(feature.detach())  # the actor learns through its actions, not through its inputs
            raw = policy.sample(action_noise[t])
            state = model.predict(state, torch.tanh(raw), noise[t])
            feature = state.feature
            features.append(feature)
            raws.append(raw)
            policies.append(policy)
        policy = Gaussian(*(torch.stack(parts) for parts in zip(*policies, strict=True)))
        return Imagined(torch.stack(features), torch.stack(raws), policy)

    def loss(self, imagined: Imagined, model: WorldModel) -> Terms:
        """The losses of actor and critic, and what they are made of."""
        settings, feature = self.settings, imagined.feature
        if self.slow_critic is None:
            predicted = self.critic(feature)
            value, predicted = predicted.mean, predicted.rows(slice(None, -1))
        else:  # it gives the targets, and the critic learns from features alone
            value, predicted = self.slow_critic(feature).mean, self.critic(feature[:-1].detach())
        reward = model.reward(feature).mean
        discount = model.discount(feature, settings.discount)
        weight = discount_weights(discount)[:-1].detach()
        target = lambda_return(reward, discount, value, lam=settings.return_lambda)
        scale = self.return_scale(target)
        log_prob = tanh_log_prob(imagined.policy, imagined.raw)  # [H, N]; row t belongs to the action into t
        entropy = -log_prob.mean()
        if settings.gradient == "dynamics":
            gain = dynamics_actor_loss(target / scale, weight)
        else:
            advantage = generalised_advantage(reward, discount, value, lam=settings.return_lambda)
            # The action taken *at* state t is the one that led to t + 1; as data, not as a path into the model.
            taken = tanh_log_prob(imagined.policy, imagined.raw.detach())[1:]
            gain = reinforce_actor_loss(taken, advantage / scale, weight)
        losses = {"actor": gain - settings.entropy * entropy, "critic": critic_loss(predicted, target, weight)}
        metrics = {
            "actor/entropy": entropy,
            "actor/std": imagined.policy.std.mean(),
            "critic/value": value.mean(),
            "critic/return": target.mean(),
            "critic/reward": reward.mean(),
        }
        if self.return_range is not None:
            metrics["actor/return_range"] = self.return_range.mean.clone()
        return Terms(losses, {name: metric.detach() for name, metric in metrics.items()})

    def return_scale(self, target: Tensor) -> Tensor | float:
        """What returns are divided by: max(1, running 5–95 percentile range), or 1.   [H − 1, N] → scalar."""
        if self.return_range is None:
            return 1.0
        if self.training:
            returns = all_gather_columns(target)
            ends = torch.linspace(0.05, 0.95, 2, dtype=returns.dtype, device=returns.device)  # no copy to wait for
            low, high = torch.quantile(returns, ends)
            self.return_range.follow(high - low)
        return self.return_range.mean.clamp_min(1.0)
