"""What all agents with a world model share: observing, and retracing where it can be done."""

from __future__ import annotations

import torch

from ccwm.agents.control import Control
from ccwm.agents.learner import Learner, named, total
from ccwm.agents.noise import Noise
from ccwm.agents.retracing import Retracing, SeparateRetracing, SharedRetracing
from ccwm.agents.truncation import Truncation
from ccwm.agents.world_model import Observed, WorldModel
from ccwm.nets.init import init_weights
from ccwm.settings.agent import AgentConfig
from ccwm.structs import Batch, Terms


class WorldModelLearner(Learner):
    """A world model and, where the weight of retracing is above 0, retracing and truncation."""

    has_world_model = True

    def __init__(self, config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__(config, observation_shape=observation_shape, actions=actions)
        model = WorldModel(config.model, observation_shape=observation_shape, actions=actions)
        self.world_model = init_weights(model, config.model.init)
        self.retracing: Retracing | None = None
        self.truncation: Truncation | None = None

    def build_retracing(self, way_back: type[SharedRetracing | SeparateRetracing], *, discount: float) -> None:
        """Build what retraces; last, so that agents of one seed start from the same weights everywhere else."""
        config, feature = self.config, self.world_model.rssm.feature
        if config.retrace.weight > 0:
            retracing = way_back(config.retrace, config.model, feature=feature, actions=self.actions, discount=discount)
            self.retracing = init_weights(retracing, config.model.init)
            self.truncation = Truncation(config.truncation, discount=discount)

    @property
    def control(self) -> Control:
        """What acts on the latent states."""
        raise NotImplementedError

    def observe(self, batch: Batch, noise: Noise) -> tuple[Observed, Terms]:
        """Predict and correct along the batch (Eq. 2–4)."""
        observed = self.world_model.observe(batch, noise.posterior)
        losses, metrics = self.world_model.loss(batch, observed)
        return observed, Terms({"model": total(losses)}, named("model", {**losses, **metrics}))

    def retrace(self, batch: Batch, observed: Observed, noise: Noise, env_steps: int) -> Terms:
        """Walk back where the value says that it can be done (Eq. 5–8); nothing is computed without retracing."""
        if self.retracing is None or self.truncation is None:
            return Terms({}, {})
        kept = self.truncation(batch, observed.posterior, self.world_model, self.control, env_steps)
        steps = slice(noise.stretch, noise.stretch + (self.config.retrace.length or len(kept)))
        losses, metrics = self.retracing.loss(
            batch.is_first[steps],
            observed.rows(steps),
            kept[steps],
            self.world_model,
            self.control,
            noise.retraced,
        )
        metrics["truncated_share"] = 1 - kept.to(batch.reward.dtype).mean()
        if self.truncation.settings.mode == "auto":
            metrics["threshold"] = torch.as_tensor(self.truncation.threshold)
        parts = {"model": losses["loss"]}
        if self.retracing.learns_alone:
            parts["reverse"] = losses["loss"]
        return Terms(parts, named("retrace", {**losses, **metrics}))

    @torch.no_grad()
    def retrace_skill(self, batch: Batch) -> dict[str, float]:
        """How much closer than the next state a retraced state is to the one before it; empty without retracing."""
        if self.retracing is None:
            return {}
        zeros = batch.reward.new_zeros(*batch.reward.shape, self.config.model.stoch)
        return self.retracing.skill(self.world_model.observe(batch, zeros), self.world_model)
