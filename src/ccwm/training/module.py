"""An agent in training, as a LightningModule; the training step of CCWM is the paper's algorithm box."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import lightning as L
import torch

from ccwm.agents.learner import Learner
from ccwm.agents.model_based import ModelBasedLearner
from ccwm.agents.noise import draw_noise
from ccwm.structs import Batch, Terms


@dataclass
class Counters:
    """What every schedule is driven by."""

    cycle: int = 0
    evaluated: int = 0
    """Cycles whose evaluation, where one was due, is done."""
    updates: int = 0
    env_steps: int = 0
    episodes: int = 0


class AgentModule(L.LightningModule):
    """A learner of any kind with the seed and the counters of its run."""

    learner: Learner
    PHASES: ClassVar[tuple[tuple[str, ...], ...]] = (("model",),)
    """The parts that learn from each of the terms of a training step, one behind the other."""

    def __init__(self, learner: Learner, *, seed: int) -> None:
        super().__init__()
        self.automatic_optimization = False  # ``training/update.py`` steps the optimisers
        self.learner, self.seed = learner, seed
        self.counters = Counters()

    def configure_optimizers(self) -> torch.optim.Adam:
        """One Adam with a group for each part, so that all parts step or none."""
        settings = self.learner.config.optimiser
        rates = {"model": settings.model_lr, "actor": settings.actor_lr, "critic": settings.critic_lr,
                 "reverse": settings.model_lr}  # fmt: skip
        groups = [{"params": group, "lr": rates[part]} for part, group in self.learner.parts().items()]
        return torch.optim.Adam(groups, eps=settings.eps, fused=True)

    def get_extra_state(self) -> dict[str, Any]:
        """The counters, which belong to the state of a run."""
        return asdict(self.counters)

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Resume at these counters."""
        for name, value in asdict(Counters(**state)).items():
            setattr(self.counters, name, value)  # in place: other objects hold a reference


class CCWM(AgentModule):
    """World model, actor and critic, updated together from one batch."""

    learner: ModelBasedLearner
    PHASES = (("model", "reverse"), ("actor", "critic"))

    def __init__(self, learner: ModelBasedLearner, *, seed: int) -> None:
        super().__init__(learner, seed=seed)

    def training_step(self, batch: Batch) -> Iterator[Terms]:  # type: ignore[override]
        """The loss of each part, and what is logged: observe, retrace, imagine (Algorithm 1).

        The model's come first: whoever takes their gradients before asking for the others has the memory of their graph
        for imagination, which begins from detached states.
        """
        noise = draw_noise(self.seed, self.counters.updates, batch, self.learner.config)
        observed, model = self.learner.observe(batch, noise)
        retraced = self.learner.retrace(batch, observed, noise, self.counters.env_steps)
        posterior = observed.posterior
        del observed  # its images are large, and imagination does not look at them
        yield model.plus(retraced)
        yield self.learner.imagine(posterior, noise)
