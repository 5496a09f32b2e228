"""Learning via retracing: walk back from each posterior with the same prior, and compare with where it came from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ccwm.agents.world_model import Observed, WorldModel
from ccwm.losses.retrace import Bisimulation, bisimulation, l2, reconstruction
from ccwm.nets.actor import Actor
from ccwm.nets.mlp import ScalarHead
from ccwm.nets.reverse import ReverseAction
from ccwm.ops.masking import masked_mean
from ccwm.ops.ranks import gathered
from ccwm.ops.truncation import (
    adaptive_mask,
    algorithm1_mask,
    annealed_share,
    kept_pairs,
    outlier_threshold,
    relative_changes,
    scheduled_mask,
)
from ccwm.settings.agent import Retrace, Truncation
from ccwm.structs import Batch, Gaussian, LatentState, stack

MEMORY = 100
"""Updates over which `auto` averages what is usual."""


class Retracing(nn.Module):
    """ρ, the chains of retraced states, the mask and the loss."""

    def __init__(
        self, retrace: Retrace, truncation: Truncation, *, feature: int, actions: int, discount: float
    ) -> None:
        super().__init__()
        self.settings, self.truncation, self.discount = retrace, truncation, discount
        self.reverse = ReverseAction(feature=feature, actions=actions, units=retrace.reverse_units)
        self.watched: Tensor
        self.usual: Tensor
        if truncation.mode == "auto":
            self.register_buffer("watched", torch.zeros(()))  # updates behind the median
            self.register_buffer("usual", torch.zeros(()))  # the median of Δ

    @property
    def threshold(self) -> float | Tensor:
        """η: what the settings say, or the outlier's fence of all changes that were watched."""
        return outlier_threshold(self.usual) if self.truncation.mode == "auto" else self.truncation.threshold

    def kept(
        self,
        batch: Batch,
        posterior: LatentState,
        model: WorldModel,
        actor: Actor,
        critic: ScalarHead,
        env_steps: int,
    ) -> Tensor:
        """Which posteriors stay in the retrace loss: bool [T, B]."""
        settings = self.truncation
        if settings.mode == "scheduled":
            share = annealed_share(env_steps, initial=settings.final_share, steps=settings.final_share_steps)
            return scheduled_mask(batch.position, batch.episode_length, final_share=share)
        if settings.mode == "none" or env_steps < settings.start:
            return torch.ones_like(batch.is_first)
        value = self.signal(posterior, model, actor, critic)
        if settings.mode == "auto" and self.training:
            self.watch(value)
        if settings.rule == "algorithm1":
            return algorithm1_mask(value, threshold=self.threshold, window=settings.window)
        lookback = settings.window if settings.lookback is None else settings.lookback
        return adaptive_mask(value, threshold=self.threshold, window=settings.window, lookback=lookback)

    @torch.no_grad()
    def watch(self, value: Tensor) -> None:
        """Let the median follow this batch's changes: a plain average first, then over some ``MEMORY`` updates."""
        changes = gathered(relative_changes(value, window=self.truncation.window))
        self.watched += 1
        self.usual += (changes.to(self.usual).quantile(0.5) - self.usual) / self.watched.clamp_max(MEMORY)

    @torch.no_grad()
    def signal(self, posterior: LatentState, model: WorldModel, actor: Actor, critic: ScalarHead) -> Tensor:
        """What truncation watches: V, or Q = r̂(z) + γV(ẑ') one model step ahead under the greedy action.   → [T, B]."""
        value: Tensor
        if self.truncation.signal == "value":
            value = critic(posterior.feature)
            return value
        flat = posterior.flatten()
        ahead = model.rssm.predict(flat, actor.greedy(flat.feature), torch.zeros_like(flat.stoch)).feature
        value = model.reward(flat.feature) + model.discount(flat.feature, self.discount) * critic(ahead)
        return value.reshape(posterior.stoch.shape[:2])

    def walk(self, posterior: LatentState, model: WorldModel, noise: Tensor) -> LatentState:
        """ž: chains of K steps back from every posterior that has K before it.   → [K, samples, T − K, B, ·].

        Entry [j − 1, :, e − K] is the state retraced to time e − j by the chain that started at z̃_e.
        """
        horizon, samples, chains, width, _ = noise.shape
        if chains == 0:
            raise ValueError(
                f"retrace.horizon = {horizon} finds no chain in windows of {len(posterior.stoch)} steps: "
                f"set it below train.length"
            )
        feature = posterior.feature
        if self.settings.reverse_action == "separate":
            feature = feature.detach()  # ρ then learns alone: the model gets no gradient by way of ρ's inputs
        actions = self.reverse(feature[1:], feature[:-1])  # [T − 1, B, A]; row t leads from t + 1 back to t
        state = posterior.map(lambda part: part[horizon:].expand(samples, chains, width, -1)).flatten()
        states = []
        for j in range(1, horizon + 1):
            back = actions[horizon - j : horizon - j + chains].expand(samples, chains, width, -1)
            state = model.rssm.predict(state, back.flatten(0, -2), noise[j - 1].flatten(0, -2))
            states.append(state.fold(samples, chains, width))
        return stack(states)

    def loss(
        self, batch: Batch, observed: Observed, kept: Tensor, model: WorldModel, actor: Actor, noise: Tensor
    ) -> dict[str, Tensor]:
        """The retrace loss, averaged over the states that the mask keeps, and what it is made of."""
        horizon, samples, chains, _, _ = noise.shape
        times = [slice(horizon - j, horizon - j + chains) for j in range(1, horizon + 1)]  # where step j arrives

        def arrived(value: Tensor) -> Tensor:
            """[T, B, …] at the times that the chains pass, beside every sample: [K, samples, T − K, B, …]."""
            passed = torch.stack([value[time] for time in times]).unsqueeze(1)
            return passed.expand(-1, samples, *passed.shape[2:])

        retraced = self.walk(observed.posterior, model, noise)
        original = observed.posterior.map(arrived)
        if self.settings.detach == "original":
            original = original.detach()
        # A chain counts as far back as every transition on its way is kept.
        mask = arrived(kept_pairs(kept, batch.is_first)).cumprod(0).bool()

        terms: dict[str, Tensor] = {}
        if self.settings.loss == "bisimulation":
            result = self._bisimulation(original, retraced, model, actor)
            each = result.loss
            terms = {name: masked_mean(getattr(result, name).detach(), mask) for name in ("l1", "reward_kl", "w2")}
        elif self.settings.loss == "l2":
            each = l2(original, retraced)
        else:
            each = reconstruction(model.decoder(retraced.feature), arrived(observed.image))
        return {
            **terms,
            "loss": self.settings.weight * masked_mean(each, mask),
            "truncated_share": 1 - kept.to(each.dtype).mean(),
            **({"threshold": outlier_threshold(self.usual)} if self.truncation.mode == "auto" else {}),
        }

    def _bisimulation(
        self, original: LatentState, retraced: LatentState, model: WorldModel, actor: Actor
    ) -> Bisimulation:
        """Both ends of the comparison go through the model as one batch."""
        both = stack([original, retraced])
        shape, flat = both.stoch.shape[:-1], both.flatten()
        with torch.no_grad():  # the bisimulation compares states; it must not move the policy
            action = actor.greedy(flat.feature)
        following = model.rssm.prior(model.rssm.advance(flat.deter, flat.stoch, action))
        mean, std = (part.reshape(*shape, -1) for part in following)
        reward = model.reward(flat.feature).reshape(shape)
        return bisimulation(
            original,
            retraced,
            reward_original=reward[0],
            reward_retraced=reward[1],
            next_original=Gaussian(mean[0], std[0]),
            next_retraced=Gaussian(mean[1], std[1]),
            discount=self.discount,
        )
