"""Whether this machine has the devices that the settings name; no result depends on it."""

from __future__ import annotations

import os

from lightning.fabric.accelerators.accelerator import Accelerator
from lightning.fabric.accelerators.cuda import CUDAAccelerator
from lightning.fabric.accelerators.mps import MPSAccelerator
from lightning.fabric.accelerators.xla import XLAAccelerator
from torch import distributed

from ccwm.errors import UserError
from ccwm.settings.agent import Trainer


def check_devices(trainer: Trainer) -> None:
    """Refuse, by its key, what this machine does not have; Lightning would raise errors of its own, or use bf16."""
    kind: str = trainer.accelerator
    kinds: dict[str, type[Accelerator]] = {"gpu": CUDAAccelerator, "mps": MPSAccelerator, "tpu": XLAAccelerator}
    there = [name for name, accelerator in kinds.items() if accelerator.is_available()]
    if kind == "auto":
        kind = there[0] if there else "cpu"
    if kind != "cpu" and kind not in there and not (kind == "gpu" and "mps" in there):
        has = " and ".join(there) or "only a CPU"
        raise UserError(f"trainer.accelerator is {kind}, this machine has {has}", hint="write `auto` or `cpu`")
    most = (os.cpu_count() or 1) if kind == "cpu" else max(kinds[name].auto_device_count() for name in there)
    if trainer.devices > most and not distributed.is_torchelastic_launched():
        what = "CPU cores" if kind == "cpu" else "devices"
        hint = f"write at most {most}, or start it on several hosts with torchrun"
        raise UserError(f"trainer.devices is {trainer.devices}, this machine has {most} {what}", hint=hint)
    if trainer.precision == "16-mixed" and kind == "cpu":
        hint = "write `bf16-mixed` or `32-true`"
        raise UserError("trainer.precision is 16-mixed, which a CPU does not compute", hint=hint)


def one_device(trainer: Trainer) -> Trainer:
    """The same settings for a single process: for tuning and studies."""
    return trainer.model_copy(update={"devices": 1, "strategy": "auto"})
