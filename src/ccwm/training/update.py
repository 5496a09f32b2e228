"""One update: what every kind of agent shares, and the joint one of losses that a batch gives to several parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ccwm.agents.distributed import all_reduce_mean
from ccwm.structs import Batch, Terms
from ccwm.training.finite import FiniteCheck
from ccwm.training.module import CCWM, AgentModule


class Updater:
    """A module on the devices of a Fabric: its updates, their logged numbers, and the state to resume from."""

    def __init__(self, fabric: L.Fabric, module: AgentModule) -> None:
        fabric.to_device(fabric.strategy.precision.convert_module(module))
        self.fabric, self.module = fabric, module
        self.check = FiniteCheck()
        self.sums: dict[str, Tensor] = {}
        self.summed = 0

    def step(self, batch: Batch) -> None:
        """One update from this rank's rows of a batch."""
        self._log(self.update(self.on_device(batch)))
        self.module.counters.updates += 1

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Change the weights by one update; returns what is logged of it, each a scalar by name."""
        raise NotImplementedError

    def on_device(self, batch: Batch) -> Batch:
        """The batch where the weights are, floats in their number format; an accelerator need not wait for the copy."""
        device, dtype = self.fabric.device, self.module.learner.dtype
        pinned = batch if device.type == "cpu" else Batch(*(part.pin_memory() for part in batch))
        moved = (part.to(device, non_blocking=True) for part in pinned)
        return Batch(*(part.to(dtype) if part.is_floating_point() else part for part in moved))

    def _log(self, metrics: dict[str, Tensor]) -> None:
        for name, value in metrics.items():
            self.sums[name] = self.sums[name] + value.detach() if name in self.sums else value.detach()
        self.summed += 1

    def averages(self) -> dict[str, float]:
        """Means over the updates since the last call of every logged number."""
        self.check.raise_if_skipped()
        means = torch.stack(list(self.sums.values())) / self.summed
        names, self.sums, self.summed = list(self.sums), {}, 0
        return dict(zip(names, means.tolist(), strict=True))

    def optimizer_state(self) -> dict[str, Any]:
        """What the optimisers remember, by their part of the checkpoint."""
        raise NotImplementedError

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        """Resume from an ``optimizer_state``."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """All that a bit-exact resume needs, as tensors and plain values."""
        self.check.raise_if_skipped()
        return {
            "module": self.module.state_dict(),
            **self.optimizer_state(),
            "sums": dict(self.sums),
            "summed": self.summed,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a ``state_dict``."""
        self.module.load_state_dict(state["module"])
        self.load_optimizer_state(state)
        device = self.fabric.device
        self.sums = {name: value.to(device) for name, value in state["sums"].items()}
        self.summed = state["summed"]


class Phase(nn.Module):
    """The next terms of a training step; it has the parameters that they train, for DistributedDataParallel to see."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__()
        self.trained = nn.ParameterList(parameters)

    def forward(self, steps: Iterator[Terms]) -> Terms:
        """Go on to where a training step yields."""
        return next(steps)


class JointUpdater(Updater):
    """Losses of one batch, the gradient of each for its own part, one step of one optimiser, or none if not finite.

    Ranks share the gradients by DistributedDataParallel.
    """

    def __init__(self, fabric: L.Fabric, module: AgentModule) -> None:
        super().__init__(fabric, module)
        self.parts = module.learner.parts()
        self.adam: Any = module.configure_optimizers()
        self.optimizer: Any = fabric.setup_optimizers(self.adam)
        # With 16-mixed.
        self.scaler: torch.amp.GradScaler | None = getattr(fabric.strategy.precision, "scaler", None)
        self.phases = [self._phase([part for part in parts if part in self.parts]) for parts in module.PHASES]

    def _phase(self, parts: list[str]) -> nn.Module:
        phase = Phase([parameter for part in parts for parameter in self.parts[part]])
        if self.fabric.world_size == 1:
            return phase
        devices = None if self.fabric.device.type == "cpu" else [self.fabric.device]
        return DistributedDataParallel(phase, device_ids=devices)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Step all parts together."""
        assert isinstance(self.module, CCWM)
        return self.step_on(self.module.training_step(batch))

    def step_on(self, steps: Iterator[Terms]) -> dict[str, Tensor]:
        """Back-propagate the terms of each phase as they come, then step; returns what is logged."""
        self.optimizer.zero_grad()
        own: dict[str, Tensor] = {}
        for phase in self.phases:
            with self.fabric.autocast():
                terms = phase(steps)
            own |= {name: metric.detach() for name, metric in terms.metrics.items()}
            *_, last = terms.losses
            for part, loss in terms.losses.items():
                # Each loss reaches the parameters of its own part and no others; the last pass frees the graph.
                self.fabric.backward(loss, inputs=self.parts[part], retain_graph=part != last)
            del terms, loss
        metrics = self._average_over_ranks(own)
        norms = self._clip()
        stepped = self._step(metrics, norms)
        self.module.learner.after_step()
        return {**metrics, **stepped}

    def _average_over_ranks(self, metrics: dict[str, Tensor]) -> dict[str, Tensor]:
        """The whole batch's metrics, so that every rank sees the same, NaN included, and stops or resumes alike."""
        if self.fabric.world_size == 1:
            return metrics
        return dict(zip(metrics, all_reduce_mean(torch.stack(list(metrics.values()))), strict=True))

    def _clip(self) -> dict[str, Tensor]:
        """Clip each part's gradient by its norm, in the loss's own scale; the norms are those before clipping."""
        if self.scaler is not None:
            self.scaler.unscale_(self.adam)
        limit = self.module.learner.config.optimiser.grad_clip
        return {f"grad_norm/{part}": torch.nn.utils.clip_grad_norm_(group, limit) for part, group in self.parts.items()}

    def _step(self, metrics: dict[str, Tensor], norms: dict[str, Tensor]) -> dict[str, Tensor]:
        """Step all parts, or none where something is not finite; returns what is logged of the step."""
        skip = self.check.skip(self.module.counters.updates, metrics, norms, self.scaler)
        if self.scaler is None:
            # Fused Adam reads it on the device: the host need not wait to know that a step must not be made.
            self.adam.found_inf = skip
            self.optimizer.step()
            return norms
        scale = self.scaler.scale(torch.ones((), device=self.fabric.device))
        self.optimizer.step()  # Fabric's loss scaling skips it by itself where a gradient overflowed
        assert skip is not None
        stepped = {name: torch.where(skip > 0, 0, norm) for name, norm in norms.items()}
        return {**stepped, "precision/scale": scale, "precision/skipped": skip}

    def optimizer_state(self) -> dict[str, Any]:
        """Adam's moments, and the scale of the loss."""
        scaler = {} if self.scaler is None else self.scaler.state_dict()
        return {"optimizer": self.optimizer.state_dict(), "scaler": scaler}

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        """Resume from an ``optimizer_state``."""
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
