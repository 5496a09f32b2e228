"""One batch, several processes: the leader's process starts the others, which live no longer than it needs them.

The leader is the stage itself and rank 0: it alone acts, evaluates and writes. A follower holds the same weights, reads
its columns of every batch and gives its gradients; it has nothing to lose, so it can be ended at any moment. Its
standard input holds one line of orders and is then silent until the leader closes it or is dead, whereupon it ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import lightning as L
import torch
from torch import distributed
from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]

from ccwm.errors import UserError
from ccwm.settings.agent import Trainer

PATIENCE = timedelta(days=1)
"""How long a rank waits for another: longer than any evaluation. A dead one is noticed at once, by its connection."""
GOODBYE = 60.0
"""Seconds that followers have to leave once the last update is made."""
HOST = "127.0.0.1"


class FollowerLost(UserError, RuntimeError):
    """A process that shared the batch has ended before its time; why, it has said itself."""


LOST = "a process that shared the batch has ended with code {}; run the same command again to go on"


def is_shared(trainer: Trainer) -> bool:
    """Whether processes are to share the batch."""
    return trainer.devices > 1 or trainer.strategy == "ddp"


def device_of(trainer: Trainer, rank: int) -> int | list[int]:
    """Lightning's ``devices`` for one rank: its own one, or the CPU that all share."""
    if trainer.devices == 1 or L.Fabric(accelerator=trainer.accelerator, devices=1).device.type == "cpu":
        return 1
    there = torch.accelerator.device_count()
    if trainer.devices > there:
        raise UserError(f"trainer.devices is {trainer.devices}, but this machine has {there}: lower it")
    return [rank]


@contextmanager
def leading(trainer: Trainer, command: str, orders: str) -> Iterator[None]:
    """Within, this process is rank 0 of ``trainer.devices``; the others run the Python ``command`` on these orders.

    A follower gets one line: its rank, the rendezvous' port and the orders. However this ends, no follower is left.
    """
    if not is_shared(trainer):
        yield
        return
    meeting = TCPStore(HOST, 0, is_master=True, wait_for_workers=False, timeout=PATIENCE)
    followers = [
        subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, start_new_session=True)
        for _ in range(1, trainer.devices)
    ]
    try:
        with _dismissed(followers):
            _gather(followers, meeting, orders)
            with _group(trainer, meeting, 0), _dismissed(followers):  # before the group goes, which they would miss
                yield
                for follower in followers:
                    follower.wait(GOODBYE)
    except UserError:
        raise
    except RuntimeError as error:  # torch's word for a connection that has gone
        for follower in followers:
            with suppress(subprocess.TimeoutExpired):
                if follower.wait(1):
                    raise FollowerLost(LOST.format(follower.returncode)) from error
        raise


@contextmanager
def following(trainer: Trainer, rank: int, port: int) -> Iterator[None]:
    """Within, this process is one of the ranks that a leader on this machine has started."""
    meeting = TCPStore(HOST, port, is_master=False, timeout=PATIENCE)
    meeting.set(_present(rank), "")
    with _group(trainer, meeting, rank):
        yield


def heed_the_leader() -> tuple[int, int, str]:
    """A follower's first call: its rank, the port and its orders; from here on it ends when the leader does.

    Signals are the leader's to answer: it ends at the next whole update, and the followers with it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    rank, port, orders = sys.stdin.readline().split(" ", 2)

    def wait() -> None:
        sys.stdin.read()
        os._exit(0)  # dismissed, which is no failure

    threading.Thread(target=wait, daemon=True).start()
    return int(rank), int(port), orders


@contextmanager
def _group(trainer: Trainer, meeting: Store, rank: int) -> Iterator[None]:
    device = L.Fabric(accelerator=trainer.accelerator, devices=device_of(trainer, rank)).device
    distributed.init_process_group(
        distributed.get_default_backend_for_device(device),
        store=meeting,
        rank=rank,
        world_size=trainer.devices,
        timeout=PATIENCE,
        device_id=None if device.type == "cpu" else device,
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()


def _present(rank: int) -> str:
    return f"rank {rank} is there"


def _gather(followers: list[subprocess.Popen[bytes]], meeting: TCPStore, orders: str) -> None:
    """Give each its orders, and wait until all are there or one never will be."""
    for rank, follower in enumerate(followers, start=1):
        assert follower.stdin is not None
        follower.stdin.write(f"{rank} {meeting.port} {orders}\n".encode())
        follower.stdin.flush()
    for rank, follower in enumerate(followers, start=1):
        while not meeting.check([_present(rank)]):
            if follower.poll() is not None:
                raise FollowerLost(LOST.format(follower.returncode))
            time.sleep(0.02)


@contextmanager
def _dismissed(followers: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """At the end, close everyone's input, on which they end at once; in no case does one stay."""
    try:
        yield
    finally:
        for follower in followers:
            assert follower.stdin is not None
            with suppress(BrokenPipeError):
                follower.stdin.close()
            try:
                follower.wait(5)
            except subprocess.TimeoutExpired:
                follower.kill()
                follower.wait()
