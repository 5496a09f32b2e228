"""The whole agent as one module, and the losses of one update in the order of the paper's Algorithm 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor, nn

from ccwm.agents.actor_critic import ActorCritic
from ccwm.agents.noise import Noise, draw_noise
from ccwm.agents.retracing import Retracing
from ccwm.agents.world_model import WorldModel
from ccwm.nets.init import begin
from ccwm.ops.ranks import own_weight, picked, world_size
from ccwm.settings.agent import ActorCritic as ActorCriticSettings
from ccwm.settings.agent import Model, Retrace, Truncation
from ccwm.structs import Batch


class Losses(NamedTuple):
    """One scalar for each optimiser, and every term under its own name."""

    parts: dict[str, Tensor]  # "model", "actor", "critic", and "reverse" where ρ learns on its own
    terms: dict[str, Tensor]


class Learner(nn.Module):
    """World model, actor_critic and, where the weight of retracing is above 0, the retracing."""

    def __init__(
        self,
        *,
        model: Model,
        retrace: Retrace,
        truncation: Truncation,
        actor_critic: ActorCriticSettings,
        size: int,
        actions: int,
    ) -> None:
        super().__init__()
        self.actions = actions
        self.world_model = begin(WorldModel(model, size=size, actions=actions), model.init)
        feature = self.world_model.rssm.feature
        self.actor_critic = begin(ActorCritic(actor_critic, feature=feature, actions=actions), model.init)
        # Built last, so that Dreamer and CCWM of one seed start from the same weights everywhere else.
        self.retracing = None
        if retrace.weight > 0:
            retracing = Retracing(retrace, truncation, feature=feature, actions=actions, discount=actor_critic.discount)
            self.retracing = begin(retracing, model.init)

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of each optimiser."""
        groups = {
            "model": list(self.world_model.parameters()),
            "actor": list(self.actor_critic.actor.parameters()),
            "critic": list(self.actor_critic.critic.parameters()),
        }
        if self.retracing is not None:
            own = self.retracing.settings.reverse_action == "separate"
            groups.setdefault("reverse" if own else "model", []).extend(self.retracing.parameters())
        return groups

    def noise(self, seed: int, update: int, batch: Batch) -> Noise:
        """All randomness of this update."""
        retrace = self.retracing.settings if self.retracing is not None else None
        actor_critic = self.actor_critic.settings
        return draw_noise(
            seed,
            update,
            like=batch.reward,
            length=batch.reward.shape[0],
            batch=batch.reward.shape[1] * world_size(),
            stoch=self.world_model.rssm.stoch,
            actions=self.actions,
            starts=actor_critic.starts,
            horizon=actor_critic.horizon,
            retrace_horizon=retrace.horizon if retrace else 0,
            retrace_samples=retrace.samples if retrace else 0,
        )

    def forward(self, batch: Batch, noise: Noise, env_steps: int) -> Losses:
        """Observe, retrace, dream: the losses of every part."""
        model, actor_critic = self.world_model, self.actor_critic
        terms: dict[str, Tensor] = {}
        parts: dict[str, Tensor] = {}

        # Forward: predict and correct (Eq. 2–4)
        observed = model.observe(batch, noise.posterior)
        forward = model.losses(batch, observed)
        terms |= named("model", forward)
        parts["model"] = sum_of(value for name, value in forward.items() if name != "nats")

        # Backward: retrace, where the value says that it can be done (Eq. 5–8)
        if self.retracing is not None:
            kept = self.retracing.kept(
                batch, observed.posterior, model, actor_critic.actor, actor_critic.critic, env_steps
            )
            retrace = self.retracing.loss(batch, observed, kept, model, actor_critic.actor, noise.retraced)
            terms |= named("retrace", retrace)
            parts["model"] = parts["model"] + retrace["loss"]
            if self.retracing.settings.reverse_action == "separate":
                parts["reverse"] = retrace["loss"]

        # ActorCritic: dream from what was observed
        start = observed.posterior.map(lambda part: picked(part, noise.start))  # detached: dreams train no model
        dream = actor_critic.dream(start, model, dynamics=noise.dream, action=noise.action)
        weight = own_weight(len(noise.start))
        for part, values in actor_critic.losses(dream, model).items():
            weighted = values if weight == 1 else {name: weight * value for name, value in values.items()}
            terms |= named(part, weighted)
            parts[part] = weighted["loss"]
        return Losses(parts, {name: value.detach() for name, value in terms.items()})


def named(part: str, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """Prefix each name with the part that it belongs to."""
    return {f"{part}/{name}": value for name, value in values.items()}


def sum_of(values: Iterator[Tensor]) -> Tensor:
    """The sum of at least one scalar tensor."""
    total = next(values)
    for value in values:
        total = total + value
    return total
