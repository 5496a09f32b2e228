"""PlayVirtual in training: its representation learns by prediction and by virtual cycles."""

from __future__ import annotations

from ccwm.agents.learner import total
from ccwm.agents.noise import draw_virtual
from ccwm.agents.playvirtual import PlayVirtualLearner
from ccwm.structs import Batch, Terms
from ccwm.training.model_free import Representation, Represented


class PlayVirtual(Representation):
    """Deterministic dynamics with cycles of virtual actions, and SAC on its latents."""

    learner: PlayVirtualLearner

    def training_step(self, batch: Batch) -> Represented:  # type: ignore[override]
        """The representation's loss, what is logged, and the latents: encode, predict, go out and back."""
        learner, weight = self.learner, self.learner.config.retrace.weight
        virtual = draw_virtual(self.seed, self.counters.updates, batch, learner.config)
        latent, wanted = learner.encode(batch, virtual)
        losses = {"model/prediction": learner.prediction(latent, wanted, batch.action[1 - len(latent) :])}
        if weight > 0:
            losses["retrace/loss"] = weight * learner.cycle(latent, wanted, virtual.actions)
        return Represented(Terms({"model": total(losses)}, losses), latent)
