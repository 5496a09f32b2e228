"""The agent as a LightningModule: one training step is the paper's algorithm box."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import lightning as L
import torch
from torch import Tensor

from ccwm.agents.learner import Learner
from ccwm.ops.gaussian import full
from ccwm.ops.ranks import averaged, world_size
from ccwm.settings.agent import Optimiser
from ccwm.structs import Batch
from ccwm.training.finite import Watch


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
        self.watch = Watch()
        self.scaler: torch.amp.GradScaler | None = None  # Lightning's, where the precision is 16-mixed
        self.scaler_state: dict[str, Any] = {}
        self.sums: dict[str, Tensor] = {}
        self.summed = 0

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """One Adam for each part, in the order of ``groups``."""
        return list(self.parts_optimisers.values())

    def on_fit_start(self) -> None:
        """Take over the loss scaling of ``16-mixed``, which belongs to the state of a run."""
        self.scaler = getattr(self.trainer.precision_plugin, "scaler", None)
        if self.scaler is not None and self.scaler_state:
            self.scaler.load_state_dict(self.scaler_state)

    def training_step(self, batch: Batch, index: int) -> None:
        """One update: observe, retrace, dream; then step every part, or nothing at all."""
        noise = self.learner.noise(self.seed, self.counters.updates, batch)
        losses = self.learner(batch, noise, self.counters.env_steps)
        self._backward(losses.parts)
        terms = self._share(losses.terms)
        norms = self._clip()
        self._remember(self._step(terms, norms))
        self.counters.updates += 1

    def _backward(self, parts: dict[str, Tensor]) -> None:
        """Each loss reaches the parameters of its own part and no others."""
        for part, loss in parts.items():
            self.parts_optimisers[part].zero_grad()
            self.manual_backward(loss, inputs=self.groups[part], retain_graph=True)

    def _share(self, terms: dict[str, Tensor]) -> dict[str, Tensor]:
        """Gradients and terms of the whole batch, where several processes have each a part of it."""
        if world_size() == 1:
            return terms
        with_gradient = [p for group in self.groups.values() for p in group if p.grad is not None]
        gradients = [p.grad for p in with_gradient if p.grad is not None]
        shared = averaged([*gradients, *(value.to(gradients[0].dtype) for value in terms.values())])
        for parameter, gradient in zip(with_gradient, shared, strict=False):
            parameter.grad = gradient
        return dict(zip(terms, shared[len(gradients) :], strict=True))

    def _clip(self) -> dict[str, Tensor]:
        """Clip each part's gradient by its norm, in the loss's own scale; the norms are those before clipping."""
        norms = {}
        for part, optimiser in self.parts_optimisers.items():
            if self.scaler is not None:
                self.scaler.unscale_(optimiser)
            norms[f"grad_norm/{part}"] = torch.nn.utils.clip_grad_norm_(self.groups[part], self.clip)
        return norms

    def _step(self, terms: dict[str, Tensor], norms: dict[str, Tensor]) -> dict[str, Tensor]:
        """Step all parts, or none where something is not finite; returns what is to be logged."""
        skip = self.watch.look(self.counters.updates, terms, norms, self.scaler)
        for optimiser in self.parts_optimisers.values():
            # Fused Adam reads it where the numbers are: an update that must not be made is not waited for.
            optimiser.found_inf = skip  # type: ignore[attr-defined]
            optimiser.step()
        if self.scaler is None or skip is None:
            return {**terms, **norms}
        scale = self.scaler.scale(torch.ones_like(skip))
        self.scaler.update()
        stepped = {name: torch.where(skip > 0, 0, norm) for name, norm in norms.items()}
        return {**terms, **stepped, "precision/scale": scale, "precision/skipped": skip}

    def _remember(self, terms: dict[str, Tensor]) -> None:
        for name, value in terms.items():
            term = full(value.detach())
            self.sums[name] = self.sums[name] + term if name in self.sums else term
        self.summed += 1

    def averages(self) -> dict[str, float]:
        """Means of every logged term since the last call; NotFinite where one of these updates was not made."""
        self.watch.check()
        means = {name: float(value) / self.summed for name, value in self.sums.items()}
        self.sums, self.summed = {}, 0
        return means

    def snapshot(self) -> dict[str, Any]:
        """All that a bit-exact resume needs, as tensors and plain values; NotFinite where an update was not made."""
        self.watch.check()
        return {
            "counters": asdict(self.counters),
            "learner": self.learner.state_dict(),
            "optimisers": {part: optimiser.state_dict() for part, optimiser in self.parts_optimisers.items()},
            "scaler": self.scaler_state if self.scaler is None else self.scaler.state_dict(),
            "sums": dict(self.sums),
            "summed": self.summed,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.counters = Counters(**snapshot["counters"])
        self.learner.load_state_dict(snapshot["learner"])
        for part, optimiser in self.parts_optimisers.items():
            optimiser.load_state_dict(snapshot["optimisers"][part])
        self.scaler_state = snapshot["scaler"]
        self.sums, self.summed = dict(snapshot["sums"]), snapshot["summed"]
