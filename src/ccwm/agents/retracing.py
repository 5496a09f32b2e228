"""Learning via retracing: walk back from each posterior with the same prior, and compare with the original state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ccwm.agents.distributed import masked_mean
from ccwm.agents.precision import cast_outputs
from ccwm.agents.world_model import Observed, WorldModel
from ccwm.losses.retrace import Bisimulation, bisimulation, l2
from ccwm.nets.actor import Actor
from ccwm.nets.reverse import ReverseAction
from ccwm.ops.truncation import kept_pairs
from ccwm.settings.agent import Retrace
from ccwm.structs import Gaussian, LatentState, Terms, stack


class Retracing(nn.Module):
    """ρ, the chains of retraced states, and their loss."""

    def __init__(self, settings: Retrace, *, feature: int, actions: int, discount: float) -> None:
        super().__init__()
        self.settings, self.discount = settings, discount
        self.reverse = ReverseAction(feature=feature, actions=actions, units=settings.reverse_units)
        cast_outputs(self.reverse)

    def walk(self, posterior: LatentState, model: WorldModel, noise: Tensor) -> LatentState:
        """ž: chains of K steps back from every posterior that has K before it.   → [K, samples, T − K, B, ·].

        Row [j − 1, :, e − K] is the state retraced to time e − j by the chain that started at z̃_e.
        """
        horizon, samples, chains, width, _ = noise.shape
        feature = posterior.feature
        if self.settings.reverse_action == "separate":
            feature = feature.detach()  # ρ learns alone: the model gets no gradient through ρ's inputs
        actions = self.reverse(feature[1:], feature[:-1])  # [T − 1, B, A]; row t leads from t + 1 back to t
        state = posterior.map(lambda part: part[horizon:].expand(samples, chains, width, -1)).flatten()
        states = []
        for j in range(1, horizon + 1):
            back = actions[horizon - j : horizon - j + chains].expand(samples, chains, width, -1)
            state = model.predict(state, back.flatten(0, -2), noise[j - 1].flatten(0, -2))
            states.append(state.fold(samples, chains, width))
        return stack(states)

    def loss(
        self, is_first: Tensor, observed: Observed, kept: Tensor, model: WorldModel, actor: Actor, noise: Tensor
    ) -> Terms:
        """The retrace loss (Eq. 5–8), averaged over the states that the mask [T, B] keeps, and its terms."""
        horizon, samples, chains, _, _ = noise.shape
        times = [slice(horizon - j, horizon - j + chains) for j in range(1, horizon + 1)]  # where step j arrives

        def arrived(value: Tensor) -> Tensor:
            """[T, B, …] at the times that the chains pass, for every sample: [K, samples, T − K, B, …]."""
            passed = torch.stack([value[time] for time in times]).unsqueeze(1)
            return passed.expand(-1, samples, *passed.shape[2:])

        retraced = self.walk(observed.posterior, model, noise)
        original = observed.posterior.map(arrived)
        if self.settings.detach == "original":
            original = original.detach()  # stop-gradient on the target: only the retraced state moves
        # A chain counts as far back as every transition on its way is kept.
        mask = arrived(kept_pairs(kept, is_first)).cumprod(0).bool()

        metrics = {"truncated_share": 1 - kept.to(noise.dtype).mean()}
        match self.settings.loss:
            case "bisimulation":
                distance = self._bisimulation(original, retraced, model, actor)
                loss = distance.loss
                parts = {"l1": distance.l1, "reward_kl": distance.reward_kl, "w2": distance.w2}
                metrics |= {name: masked_mean(part.detach(), mask) for name, part in parts.items()}
            case "l2":
                loss = l2(original, retraced)
            case "reconstruction":
                loss = model.reconstruction(retraced.feature, arrived(observed.target))
        return Terms({"loss": self.settings.weight * masked_mean(loss, mask)}, metrics)

    def _bisimulation(
        self, original: LatentState, retraced: LatentState, model: WorldModel, actor: Actor
    ) -> Bisimulation:
        """The bisimulation distance; both ends go through the model as one batch."""
        both = stack([original, retraced])
        shape, flat = both.stoch.shape[:-1], both.flatten()
        with torch.no_grad():  # no gradient through the policy
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
