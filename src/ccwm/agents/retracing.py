"""Learning via retracing: walk back from each posterior, and compare with the original state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ccwm.agents.control import Greedy
from ccwm.agents.distributed import free_nats, masked_mean, square_of_mean
from ccwm.agents.precision import cast_outputs
from ccwm.agents.world_model import Observed, WorldModel
from ccwm.losses.model import balanced_kl
from ccwm.losses.retrace import Comparison, bisimulation, bisimulation_gap, compare, l1, l2, metric
from ccwm.nets.dynamics import Dynamics
from ccwm.nets.reverse import ReverseAction
from ccwm.ops.truncation import kept_pairs
from ccwm.settings.agent import Model, Retrace
from ccwm.structs import Gaussian, LatentState, Terms, stack


class Retracing(nn.Module):
    """The chains of retraced states, and their loss; how a step back is made is that of a subclass."""

    learns_alone = False
    """Whether its own weights have an optimiser of their own."""

    def __init__(self, settings: Retrace, *, discount: float) -> None:
        super().__init__()
        self.settings, self.discount = settings, discount

    def back_actions(self, observed: Observed) -> Tensor:
        """The actions of the way back: [T − 1, B, A]; row t leads from t + 1 back to t."""
        raise NotImplementedError

    def step_back(self, model: WorldModel, state: LatentState, action: Tensor, noise: Tensor) -> LatentState:
        """ž of the step before: [N, ·], [N, A], [N, stoch] → [N, ·]."""
        raise NotImplementedError

    def walk(self, observed: Observed, model: WorldModel, noise: Tensor) -> LatentState:
        """ž: chains of K steps back from every posterior that has K before it.   → [K, samples, T − K, B, ·].

        Row [j − 1, :, e − K] is the state retraced to time e − j by the chain that started at z̃_e.
        """
        horizon, samples, chains, width, _ = noise.shape
        actions = self.back_actions(observed)
        state = observed.posterior.map(lambda part: part[horizon:].expand(samples, chains, width, -1)).flatten()
        states = []
        for j in range(1, horizon + 1):
            back = actions[horizon - j : horizon - j + chains].expand(samples, chains, width, -1)
            state = self.step_back(model, state, back.flatten(0, -2), noise[j - 1].flatten(0, -2))
            states.append(state.fold(samples, chains, width))
        return stack(states)

    def loss(
        self, is_first: Tensor, observed: Observed, kept: Tensor, model: WorldModel, actor: Greedy, noise: Tensor
    ) -> Terms:
        """The retrace loss (Eq. 5–8), averaged over the states that the mask [T, B] keeps, and its terms."""
        horizon, samples, chains, _, _ = noise.shape
        times = [slice(horizon - j, horizon - j + chains) for j in range(1, horizon + 1)]  # where step j arrives

        def arrived(value: Tensor, *, ahead: int = 0) -> Tensor:
            """[T, B, …] at the times that the chains pass, for every sample: [K, samples, T − K, B, …]."""
            passed = [value[time.start + ahead : time.stop + ahead] for time in times]
            return torch.stack(passed).unsqueeze(1).expand(-1, samples, *passed[0].shape)

        retraced = self.walk(observed, model, noise)
        original = observed.posterior.map(arrived)
        if self.settings.detach == "original" or self.settings.loss == "metric":
            original = original.detach()  # stop-gradient on the target: only the retraced state moves
        # A chain counts as far back as every transition on its way is kept.
        mask = arrived(kept_pairs(kept, is_first)).cumprod(0).bool()

        metrics: dict[str, Tensor] = {}
        match self.settings.loss:
            case "bisimulation" | "metric" | "released":
                compared = self._compare(original, retraced, model, actor)
                metrics = {name: masked_mean(part.detach(), mask) for name, part in compared._asdict().items()}
                if self.settings.loss == "released":  # averaged over the batch before it is squared
                    loss = square_of_mean(masked_mean(bisimulation_gap(compared, discount=self.discount), mask))
                else:
                    distance = bisimulation if self.settings.loss == "bisimulation" else metric
                    loss = masked_mean(distance(compared, discount=self.discount), mask)
            case "kl":  # the retraced prior must predict the posterior exactly as the forward prior must
                weights = {"dynamics": model.settings.kl_dynamics, "representation": model.settings.kl_representation}
                divergence = masked_mean(balanced_kl(original.gaussian, retraced.gaussian, **weights), mask)
                loss = free_nats(divergence, model.settings.free_nats)
            case "l2":
                loss = masked_mean(l2(original, retraced), mask)
            case "reconstruction":
                loss = masked_mean(model.reconstruction(retraced.feature, arrived(observed.target)), mask)
            case "released-l2":  # compares with the state *after* the original one
                following = observed.posterior.map(lambda part: arrived(part, ahead=1))
                loss = masked_mean(l2(following, retraced), mask)
            case "released-reconstruction":  # minimises the likelihood of the observation *after* the original one
                target = arrived(observed.target, ahead=1)
                loss = -masked_mean(model.reconstruction(retraced.feature, target), mask)
        return Terms({"loss": self.settings.weight * loss}, metrics)

    def skill(self, observed: Observed, model: WorldModel) -> dict[str, float]:
        """1 − error(ž_t) / error(z̃_{t+1}) against z̃_t, in latent and in observation space.

        1 is a retraced state that equals the original; 0 is no closer than the state that the step back began at.
        """
        posterior = observed.posterior
        noise = torch.zeros_like(posterior.stoch[1:]).unsqueeze(0).unsqueeze(0)
        retraced = self.walk(observed, model, noise).map(lambda part: part[0, 0])
        original, later = posterior.map(lambda part: part[:-1]), posterior.map(lambda part: part[1:])
        latent = l1(original, retraced).sum() / l1(original, later).sum()
        missed, copied = (
            model.reconstruction(state.feature, observed.target[:-1]).sum() for state in (retraced, later)
        )
        return {"retrace_skill_latent": 1 - float(latent), "retrace_skill_observation": 1 - float(missed / copied)}

    def _compare(self, original: LatentState, retraced: LatentState, model: WorldModel, actor: Greedy) -> Comparison:
        """The three measures of a distance; both ends go through the model as one batch."""
        shape = original.stoch.shape[:-1]
        deter = torch.stack([original.deter, retraced.deter]).flatten(0, -2)
        stoch = torch.stack([original.stoch, retraced.stoch]).flatten(0, -2)
        feature = torch.cat([stoch, deter], -1)
        with torch.no_grad():  # no gradient through the policy
            action = actor.greedy(feature)
        following = model.rssm.prior(model.rssm.advance(deter, stoch, action))
        mean, std = (part.reshape(2, *shape, -1) for part in following)
        reward = model.reward(feature.reshape(2, *shape, -1))
        return compare(
            original,
            retraced,
            reward_original=reward.rows(0),
            reward_retraced=reward.rows(1),
            next_original=Gaussian(mean[0], std[0]),
            next_retraced=Gaussian(mean[1], std[1]),
        )


class SharedRetracing(Retracing):
    """CCWM's way back: the same prior as forward, with a reverse action from ρ."""

    def __init__(self, settings: Retrace, model: Model, *, feature: int, actions: int, discount: float) -> None:
        super().__init__(settings, discount=discount)
        self.released = settings.loss.startswith("released")
        self.learns_alone = settings.reverse_action == "separate"
        self.reverse = ReverseAction(
            feature=feature,
            actions=actions,
            units=settings.reverse_units,
            activation=model.activation,
            norm=model.layer_norm,
            bounded=not self.released,
        )
        cast_outputs(self.reverse)

    def back_actions(self, observed: Observed) -> Tensor:
        """ρ's, from both ends of each transition."""
        later = earlier = observed.posterior.feature
        if self.released:  # the authors' code hands ρ the prior of the earlier step
            earlier = torch.cat([observed.prior.mean, observed.posterior.deter], -1)
        if self.learns_alone:
            later, earlier = later.detach(), earlier.detach()  # no gradient through ρ's inputs
        actions: Tensor = self.reverse(later[1:], earlier[:-1])
        return actions

    def step_back(self, model: WorldModel, state: LatentState, action: Tensor, noise: Tensor) -> LatentState:
        """One step of the prior."""
        return model.predict(state, action, noise)


class SeparateRetracing(Retracing):
    """Appendix B's way back: a deterministic model of its own, with the actions that were really taken."""

    def __init__(self, settings: Retrace, model: Model, *, feature: int, actions: int, discount: float) -> None:
        super().__init__(settings, discount=discount)
        self.reversed = Dynamics(
            feature=feature,
            actions=actions,
            units=settings.reverse_units,
            activation=model.activation,
            norm=model.layer_norm,
        )

    def back_actions(self, observed: Observed) -> Tensor:
        """Those of the forward transitions."""
        return observed.action[1:]

    def step_back(self, model: WorldModel, state: LatentState, action: Tensor, noise: Tensor) -> LatentState:
        """One step of the reversed model: a point, without a spread."""
        stoch, deter = self.reversed(state.feature, action).split([model.rssm.stoch, model.rssm.deter], -1)
        return LatentState(deter, stoch, stoch, torch.zeros_like(stoch))
