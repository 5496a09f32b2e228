"""Where training runs: Lightning Fabric on one device, or several processes that share each batch.

Fabric starts the processes of one host by running the script again; over several hosts torchrun does, and its
environment variables say how many there are. Rank 0 is the main process: it alone acts, evaluates and writes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import lightning as L
import torch
from lightning.fabric.strategies.ddp import DDPStrategy
from torch import distributed

from ccwm.errors import UserError
from ccwm.settings.agent import Trainer
from ccwm.training.device_check import check_devices

TIMEOUT = timedelta(days=1)
"""How long a rank waits for another: longer than any evaluation. A dead one is noticed at once, by its connection."""

LAUNCHER = "CCWM_LAUNCHER"
"""The process that started this rank, as an environment variable: it may have ended before the rank could ask."""


def is_main_process() -> bool:
    """Whether this process is rank 0, as far as its environment says."""
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", 0))) == 0


def launch(trainer: Trainer) -> L.Fabric:
    """A Fabric whose processes have all started, by itself on one host or by torchrun on several."""
    devices, nodes = trainer.devices, 1
    if distributed.is_torchelastic_launched():
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // devices
        if devices * nodes != trainer.devices:
            raise UserError(
                f"torchrun started {devices * nodes} processes, trainer.devices is {trainer.devices}",
                hint="trainer.devices counts the processes of all hosts; make both the same",
            )
    elif is_main_process():
        os.environ[LAUNCHER] = str(os.getpid())
    check_devices(trainer)
    shared = trainer.devices > 1 or trainer.strategy == "ddp"
    fabric = L.Fabric(
        accelerator=trainer.accelerator,
        devices=devices,
        num_nodes=nodes,
        precision=trainer.precision,
        strategy=DDPStrategy(timeout=TIMEOUT) if shared else "auto",
    )
    fabric.launch()
    torch.set_num_threads(trainer.threads)
    return fabric


def end_with_launcher() -> None:
    """Have this rank end as soon as the process that started it has: in a rendezvous it would wait for ever."""
    launcher = int(os.environ.get(LAUNCHER, os.getppid()))

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def lost_rank() -> Iterator[None]:
    """Within, a connection to another rank that is gone is a user error: that rank has said why it ended."""
    try:
        yield
    except RuntimeError as error:
        told = str(error).partition("\n")[0]
        if not isinstance(error, distributed.DistError) and "gloo" not in told:  # gloo raises no type of its own
            raise
        raise UserError(
            f"a process that shared the batch has ended ({told})", hint="run the same command again to resume"
        ) from error
