"""Model-free agents on a learned representation: it learns by losses of its own, then SAC steps on its features."""

from __future__ import annotations

from typing import Any, NamedTuple

import lightning as L
from torch import Tensor

from ccwm.agents.model_free import ModelFreeLearner
from ccwm.agents.noise import draw_noise
from ccwm.structs import Batch, Terms
from ccwm.training.module import AgentModule
from ccwm.training.sac import SoftStep, transitions
from ccwm.training.update import JointUpdater


class Represented(NamedTuple):
    """What the representation learns from a batch, and the features that SAC learns from."""

    terms: Terms
    feature: Tensor  # [T, B, F], of the last T steps


class Representation(AgentModule):
    """An agent whose representation has losses of its own, and whose SAC acts on it."""

    def training_step(self, batch: Batch) -> Represented:  # type: ignore[override]
        """The loss of the representation, and the features that it gives."""
        raise NotImplementedError


class ModelFree(Representation):
    """A world model that is retraced by a separate reversed model (Appendix B), and SAC on its posteriors."""

    learner: ModelFreeLearner

    def training_step(self, batch: Batch) -> Represented:  # type: ignore[override]
        """The representation's loss, what is logged, and the posteriors' features: observe, retrace."""
        noise = draw_noise(self.seed, self.counters.updates, batch, self.learner.config)
        observed, model = self.learner.observe(batch, noise)
        retraced = self.learner.retrace(batch, observed, noise, self.counters.env_steps)
        return Represented(model.plus(retraced), observed.posterior.feature)


class ModelFreeUpdater(JointUpdater):
    """A step of the representation, then one of SAC on the features that it had before."""

    module: Representation

    def __init__(self, fabric: L.Fabric, module: Representation) -> None:
        super().__init__(fabric, module)
        self.soft_step = SoftStep(module.learner, fabric.device)  # type: ignore[arg-type]  # both kinds are Soft

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Step the representation and SAC."""
        terms, feature = self.module.training_step(batch)
        metrics = self.step_on(iter([terms]))
        # Detached: what SAC wants must not bend the representation.
        return {**metrics, **self.soft_step(transitions(batch, feature.detach()), self.module)}

    def optimizer_state(self) -> dict[str, Any]:
        """The moments of every Adam."""
        return {**super().optimizer_state(), **self.soft_step.state_dict(self.module)}

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        """Resume from an ``optimizer_state``."""
        super().load_optimizer_state(state)
        self.soft_step.load_state_dict(state)
