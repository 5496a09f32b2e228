"""NaN and infinity: an update that has them is never stepped, and ends training by name."""

from __future__ import annotations

import torch
from torch import Tensor

from ccwm.errors import UserError

SMALLEST_SCALE = 1.0
"""Gradients that overflow at this scale of the loss do not overflow because of their scale."""

HINT = "lower optimiser.model_lr or optimiser.grad_clip, or look at the data with NaN in it"


class NotFinite(UserError, RuntimeError):
    """A loss or a gradient is NaN or infinite; nothing was stepped."""


class FiniteCheck:
    """Looks at every update's metrics and gradient norms before the optimiser steps.

    On a CPU, where reading a number is free, NotFinite is raised at once. On an accelerator the host would wait for the
    device in every update: there the flag stays on the device, it keeps this and all later updates from being stepped,
    and ``raise_if_skipped``, to be called before anything is reported or saved, raises.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.wrong: Tensor | None = None  # [metrics and norms] bool, of the first update that has one
        self.update: Tensor | None = None

    def skip(
        self, update: int, metrics: dict[str, Tensor], norms: dict[str, Tensor], scaler: torch.amp.GradScaler | None
    ) -> Tensor | None:
        """Whether this update must be skipped, as 1 or 0 on the device; None where it certainly need not.

        Under loss scaling a gradient that is not finite is no fault: the step is skipped and the scale lowered, as long
        as there is a scale to lower.
        """
        overflow = ~torch.stack([norm.isfinite() for norm in norms.values()])
        blamed = overflow
        if scaler is not None:
            scale = scaler.scale(torch.ones((), device=overflow.device))
            blamed = overflow & (scale <= SMALLEST_SCALE)
        wrong = torch.cat([~torch.stack([value.isfinite() for value in metrics.values()]), blamed])
        self.names = [*metrics, *norms]
        if wrong.device.type == "cpu":
            if bool(wrong.any()):
                raise not_finite(update, self.names, wrong)
            return None if scaler is None else overflow.any().float()
        if self.wrong is None or self.update is None:
            self.wrong, self.update = wrong, torch.full((), update, device=wrong.device)
        else:
            before = self.wrong.any()
            self.wrong = torch.where(before, self.wrong, wrong)
            self.update = torch.where(before, self.update, update)
        return (self.wrong.any() | overflow.any()).float()

    def raise_if_skipped(self) -> None:
        """Raise NotFinite if an update so far had to be skipped for good; waits for the device."""
        if self.wrong is not None and self.update is not None and bool(self.wrong.any()):
            raise not_finite(int(self.update), self.names, self.wrong)


def not_finite(update: int, names: list[str], wrong: Tensor, *, hint: str = HINT) -> NotFinite:
    """The error that names the numbers which are not finite, and what to do."""
    found = [name for name, fault in zip(names, wrong.tolist(), strict=True) if fault]
    return NotFinite(f"update {update}: {', '.join(found)} not finite; the last checkpoint is kept", hint=hint)
