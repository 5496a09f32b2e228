"""The model-based agents, CCWM and Dreamer: their parts, and the three steps of an update that give their losses."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ccwm.agents.actor_critic import ActorCritic
from ccwm.agents.learner import Learner, named, total
from ccwm.agents.noise import Noise
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.agents.retracing import Retracing
from ccwm.agents.truncation import Truncation
from ccwm.agents.world_model import Observed, WorldModel
from ccwm.nets.init import init_weights
from ccwm.settings.agent import AgentConfig
from ccwm.structs import Batch, Terms


class ModelBasedLearner(Learner):
    """World model, actor and critic and, where the weight of retracing is above 0, retracing and truncation."""

    has_world_model = True
    acting_parts = ("world_model.encoder.", "world_model.rssm.", "actor_critic.actor.")

    def __init__(self, config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__(config, observation_shape=observation_shape, actions=actions)
        init, discount = config.model.init, config.actor_critic.discount
        model = WorldModel(config.model, observation_shape=observation_shape, actions=actions)
        self.world_model = init_weights(model, init)
        feature = self.world_model.rssm.feature
        actor_critic = ActorCritic(config.actor_critic, config.model, feature=feature, actions=actions)
        self.actor_critic = init_weights(actor_critic, init)
        self.actor_critic.copy_critic()
        # Built last, so that Dreamer and CCWM of one seed start from the same weights everywhere else.
        self.retracing: Retracing | None = None
        self.truncation: Truncation | None = None
        if config.retrace.weight > 0:
            retracing = Retracing(config.retrace, config.model, feature=feature, actions=actions, discount=discount)
            self.retracing = init_weights(retracing, init)
            self.truncation = Truncation(config.truncation, discount=discount)

    def policy(self, *, explore: bool = False) -> RecurrentPolicy:
        """The actor on the posterior, greedy or with the noise of training."""
        exploration = self.config.actor_critic.exploration if explore else None
        return RecurrentPolicy(self.world_model, self.actor_critic.actor, exploration=exploration)

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The parameters that each loss trains."""
        groups = {
            "model": list(self.world_model.parameters()),
            "actor": list(self.actor_critic.actor.parameters()),
            "critic": list(self.actor_critic.critic.parameters()),
        }
        if self.retracing is not None:
            own = self.retracing.settings.reverse_action == "separate"
            groups.setdefault("reverse" if own else "model", []).extend(self.retracing.parameters())
        return groups

    def observe(self, batch: Batch, noise: Noise) -> tuple[Observed, Terms]:
        """Predict and correct along the batch (Eq. 2–4)."""
        observed = self.world_model.observe(batch, noise.posterior)
        losses, metrics = self.world_model.loss(batch, observed)
        return observed, Terms({"model": total(losses)}, named("model", {**losses, **metrics}))

    def retrace(self, batch: Batch, observed: Observed, noise: Noise, env_steps: int) -> Terms:
        """Walk back where the value says that it can be done (Eq. 5–8); nothing is computed for Dreamer."""
        if self.retracing is None or self.truncation is None:
            return Terms({}, {})
        kept = self.truncation(batch, observed.posterior, self.world_model, self.actor_critic, env_steps)
        steps = slice(noise.stretch, noise.stretch + (self.config.retrace.length or len(kept)))
        losses, metrics = self.retracing.loss(
            batch.is_first[steps],
            observed.rows(steps),
            kept[steps],
            self.world_model,
            self.actor_critic.actor,
            noise.retraced,
        )
        metrics["truncated_share"] = 1 - kept.to(batch.reward.dtype).mean()
        if self.truncation.settings.mode == "auto":
            metrics["threshold"] = torch.as_tensor(self.truncation.threshold)
        parts = {"model": losses["loss"]}
        if self.retracing.settings.reverse_action == "separate":
            parts["reverse"] = losses["loss"]
        return Terms(parts, named("retrace", {**losses, **metrics}))

    @torch.no_grad()
    def retrace_skill(self, batch: Batch) -> dict[str, float]:
        """How much closer than the next state a retraced state is to the one before it; empty for Dreamer."""
        if self.retracing is None:
            return {}
        zeros = batch.reward.new_zeros(*batch.reward.shape, self.config.model.stoch)
        return self.retracing.skill(self.world_model.observe(batch, zeros), self.world_model)

    def imagine(self, observed: Observed, noise: Noise) -> Terms:
        """Imagine from posteriors of every window, and learn to act there."""

        def chosen(part: Tensor) -> Tensor:
            """[T, B, ·] → [starts · B, ·]."""
            index = noise.start.unsqueeze(-1).expand(-1, -1, part.shape[-1])
            return part.detach().gather(0, index).flatten(0, 1)  # detached: imagination must not train the model

        start = observed.posterior.map(chosen)
        imagined = self.actor_critic.imagine(start, self.world_model, noise=noise.imagined, action_noise=noise.action)
        losses, metrics = self.actor_critic.loss(imagined, self.world_model)
        return Terms(losses, {**{f"{part}/loss": loss for part, loss in losses.items()}, **metrics})
