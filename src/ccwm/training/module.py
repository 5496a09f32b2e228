"""The agent as a LightningModule: one training step is the paper's algorithm box."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import lightning as L
import torch
from torch import Tensor

from ccwm.agent.learner import Learner
from ccwm.config import Optimiser
from ccwm.refusal import Refusal
from ccwm.structs import Batch


class NotFinite(Refusal, RuntimeError):
    """A loss or a gradient is NaN or infinite; nothing was stepped."""


@dataclass
class Counters:
    """What every schedule is driven by."""

    cycle: int = 0
    begun: int = 0  # cycles whose evaluation, where one was due, is behind them
    updates: int = 0
    env_steps: int = 0
    episodes: int = 0


class CCWM(L.LightningModule):
    """World model, actor and critic with their optimisers, updated together from one batch."""

    def __init__(self, learner: Learner, *, optimiser: Optimiser, seed: int) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.learner, self.seed, self.clip = learner, seed, optimiser.clip
        self.counters = Counters()
        self.groups = learner.parts()
        rates = {"model": optimiser.model, "actor": optimiser.actor, "critic": optimiser.critic,
                 "reverse": optimiser.model}  # fmt: skip
        self.parts_optimisers = {
            part: torch.optim.Adam(group, lr=rates[part], eps=optimiser.epsilon, fused=True)
            for part, group in self.groups.items()
        }
        self.sums: dict[str, Tensor] = {}
        self.summed = 0

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """One Adam for each part, in the order of ``groups``."""
        return list(self.parts_optimisers.values())

    def training_step(self, batch: Batch, index: int) -> None:
        """One update: observe, retrace, dream; then step every part, or nothing at all."""
        noise = self.learner.noise(self.seed, self.counters.updates, batch)
        losses = self.learner(batch, noise, self.counters.env_steps)
        norms = self._gradients(losses.parts)
        self._refuse_not_finite({**losses.terms, **norms})
        optimisers = self.optimizers()
        assert isinstance(optimisers, list)
        for optimiser in optimisers:
            optimiser.step()
        self.counters.updates += 1
        self._remember({**losses.terms, **norms})

    def _gradients(self, parts: dict[str, Tensor]) -> dict[str, Tensor]:
        """Each loss reaches the parameters of its own part and no others; norms are those before clipping."""
        norms = {}
        for part, loss in parts.items():
            self.parts_optimisers[part].zero_grad()
            self.manual_backward(loss, inputs=self.groups[part], retain_graph=True)
            norms[f"grad_norm/{part}"] = torch.nn.utils.clip_grad_norm_(self.groups[part], self.clip)
        return norms

    def _refuse_not_finite(self, terms: dict[str, Tensor]) -> None:
        finite = torch.stack([value.isfinite() for value in terms.values()])
        if not bool(finite.all()):
            names = [name for name, fine in zip(terms, finite.tolist(), strict=True) if not fine]
            raise NotFinite(
                f"update {self.counters.updates}: {', '.join(names)} not finite; the last checkpoint is kept. "
                f"Lower optimiser.model or optimiser.clip, or look at the data with NaN in it"
            )

    def _remember(self, terms: dict[str, Tensor]) -> None:
        for name, value in terms.items():
            self.sums[name] = self.sums[name] + value.detach() if name in self.sums else value.detach()
        self.summed += 1

    def averages(self) -> dict[str, float]:
        """Means of every logged term since the last call."""
        means = {name: float(value) / self.summed for name, value in self.sums.items()}
        self.sums, self.summed = {}, 0
        return means

    def snapshot(self) -> dict[str, Any]:
        """All that a bit-exact resume needs, as tensors and plain values."""
        return {
            "counters": asdict(self.counters),
            "learner": self.learner.state_dict(),
            "optimisers": {part: optimiser.state_dict() for part, optimiser in self.parts_optimisers.items()},
            "sums": dict(self.sums),
            "summed": self.summed,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.counters = Counters(**snapshot["counters"])
        self.learner.load_state_dict(snapshot["learner"])
        for part, optimiser in self.parts_optimisers.items():
            optimiser.load_state_dict(snapshot["optimisers"][part])
        self.sums, self.summed = dict(snapshot["sums"]), snapshot["summed"]
