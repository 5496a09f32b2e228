"""The task that Ray runs on a node: take a free slot, lay the code out, run the cell under a guard, send its log."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

import ray

from ccwm.errors import UserError
from ccwm.files import md5
from ccwm.fleet import FLEET, MARKER, guard
from ccwm.fleet.actors import ROOM, Room
from ccwm.fleet.code import Code, lay_out, write_cache_config
from ccwm.fleet.parcel import unpack
from ccwm.fleet.slot import Spec
from ccwm.settings.section import Section

OWN_BASE = "CCWM_FLEET_DIR"
"""Where a host that does not see home keeps slots and checkpoints; one that has it set uses it in any case."""
TOKEN = "RAY_AUTH_"
"""Variables that a cell gets whose actors are Ray tasks, besides."""
FOREIGN = ("RAY_", "MLFLOW_", "DVC_", "GIT_", "CCWM_", "PYTHONPATH")
"""Variables of the node that have no business in a cell."""
NOWHERE = "http://127.0.0.1:9"
"""A store that nobody answers for: what is recorded stays in the spool, and travels home with the parcel."""
PERIOD = 1.0
PATIENCE = 10.0
"""How long a finished cell waits for the mailbox to take the end of its log."""


class Assignment(Section):
    """A cell, and what a slot must be to run it."""

    cell: str
    record: str
    key: str
    """Changes with the code, the settings and the inputs."""
    params: str
    home: str
    marker: str
    cache: str
    has_remote: bool
    environment: dict[str, str]
    """Pinned, because it changes bits: threads and GL."""
    tracking_uri: str
    patch: str
    """The name of home's patch; empty for a clean tree."""
    worker: str
    """MD5 of this file at home."""
    room: str
    """The placement group of a cell with actors, else empty."""


class Mailbox:
    """An actor: logs on their way home."""

    def __init__(self) -> None:
        self._logs: list[tuple[str, bytes]] = []

    def put(self, cell: str, log: bytes) -> None:
        """Add the next piece of a cell's log."""
        self._logs.append((cell, log))

    def take(self) -> list[tuple[str, bytes]]:
        """All pieces since the last call."""
        taken, self._logs = self._logs, []
        return taken


def run_cell(assignment: str, code: list[Any], inputs: bytes, mailbox: Any) -> bytes:
    """The parcel of the finished cell; JSON with its exit code where it failed. Bytes, so that Ray pickles nothing."""
    task = Assignment.model_validate_json(assignment)
    if md5(Path(__file__)) != task.worker:
        raise UserError(f"ccwm on {platform.node()} is another version", hint="update it there, and run again")
    is_home = OWN_BASE not in os.environ and sees_home(task.home, task.marker)
    if not is_home and not task.has_remote:
        hint = "share the project's directory with it, or set a DVC remote that it reaches (docs/fleet.md)"
        raise UserError(f"{platform.node()} does not see {task.home}", hint=hint)
    own = Path(os.environ.get(OWN_BASE, Path.home() / ".cache" / "ccwm" / "fleet"))
    base = Path(task.home) / FLEET if is_home else own / task.marker
    parcel = base / "arrived" / f"{task.cell}.{task.key}.tar"
    with _held(base / "cells" / task.cell) as cell_lock, _free_slot(base / "slots") as (slot, slot_lock):
        if parcel.is_file():  # a fleet was killed before it could take it
            return parcel.read_bytes()
        _prepare(slot, task, unpack(ray.get(code[0])), base, is_home=is_home)
        (slot / "inputs.tar").write_bytes(inputs)
        spools = not is_home and task.tracking_uri.startswith("sqlite:")  # a file of another host
        spec = Spec(
            cell=task.cell,
            record=task.record,
            inputs=str(slot / "inputs.tar"),
            parcel=str(parcel),
            remote=not is_home,
            origin=_origin(task, spools=spools),
            spools=spools,
        )
        (slot / "spec.json").write_text(spec.model_dump_json())
        pinned = {**task.environment, "MLFLOW_TRACKING_URI": NOWHERE if spools else task.tracking_uri}
        if task.room:
            tokens = {name: value for name, value in os.environ.items() if name.startswith(TOKEN)}
            pinned |= {**tokens, ROOM: Room.of_this_task(task.room).model_dump_json()}
        sent: list[Any] = []
        ended = run_guarded(
            ["-m", "ccwm.fleet.slot", str(slot / "spec.json")],
            root=slot / "project",
            log=slot / "log",
            pinned=pinned,
            locks=(cell_lock, slot_lock),
            send=lambda log: sent.append(mailbox.put.remote(task.cell, log)),
        )
        if sent:
            ray.wait(sent[-1:], timeout=PATIENCE)  # the log's end is at home before the result is
        if parcel.is_file():
            return parcel.read_bytes()
        return json.dumps({"exit": ended, "host": platform.node()}).encode()


def _origin(task: Assignment, *, spools: bool) -> dict[str, str]:
    """What a record says of where and from what a cell ran."""
    said = {"host": platform.node()}
    said |= {"patch": task.patch} if task.patch else {}
    return said | ({"tracking_uri": "sqlite:///mlflow.db"} if spools else {})


@contextmanager
def _held(path: Path, *, wait: bool = True) -> Iterator[int]:
    """Hold a lock; yields its descriptor, which a guard inherits: it outlives a worker that is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not wait:
                    raise
                time.sleep(PERIOD / 2)  # the cell of a dead worker is writing its checkpoint
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _free_slot(slots: Path) -> Iterator[tuple[Path, int]]:
    """A slot of this host that nobody uses, and its lock."""
    with ExitStack() as stack:
        for number in count():
            slot = slots / f"{platform.node()}-{number}"
            with suppress(BlockingIOError):
                lock = stack.enter_context(_held(slot / "lock", wait=False))
                break
        yield slot, lock


def _prepare(slot: Path, task: Assignment, code: dict[str, bytes], base: Path, *, is_home: bool) -> None:
    root = slot / "project"
    lay_out(Code(code["commit"].decode(), code["pack"], code["patch"], task.params), root)
    work = root / ".work"
    if is_home and not work.is_symlink():
        work.symlink_to(base.parent, target_is_directory=True)  # checkpoints and unsent records stay at home
    elif not is_home and not work.exists():
        (base / "train").mkdir(parents=True, exist_ok=True)
        work.mkdir()
        (work / "train").symlink_to(base / "train", target_is_directory=True)
    cache = task.cache if is_home else str(base / "cache")
    write_cache_config(root, cache)


def run_guarded(
    arguments: list[str],
    *,
    root: Path,
    log: Path,
    pinned: dict[str, str],
    locks: tuple[int, ...],
    send: Callable[[bytes], object],
) -> int:
    """Run Python in a project until it ends, or until this task is cancelled; returns its exit code."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    inherited.pop("OMP_NUM_THREADS", None)  # Ray sets it to the number of CPUs of a task
    environment = {
        **inherited,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{inherited.get('PATH', '')}",
        "PYTHONPATH": str(root / "src"),
        "DVC_NO_ANALYTICS": "1",
        **pinned,
    }
    alive, hold = _pipe()
    done, report = _pipe()
    guarded = [sys.executable, guard.__file__, str(alive.fileno()), str(report.fileno())]
    command = [*guarded, sys.executable, *arguments]
    with log.open("wb") as output, log.open("rb") as written:
        try:
            subprocess.run(
                command,
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(alive.fileno(), report.fileno(), *locks),
                check=True,
            )
            report.close()
            while not select.select([done], [], [], PERIOD)[0]:
                _forward(written.read(), send)
        finally:  # cancelled: with `hold` closed the guard lets the cell write a checkpoint, and then ends
            for end in (hold, report, alive):
                end.close()
            code = done.read()
            done.close()
            _forward(written.read(), send)
    return int(code or b"-9")


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    """The two ends of a pipe."""
    read, write = os.pipe()
    return open(read, "rb", buffering=0), open(write, "wb", buffering=0)


def _forward(text: bytes, send: Callable[[bytes], object]) -> None:
    if text:
        send(text)


def sees_home(home: str, marker: str) -> bool:
    """Whether this host shares the project's files."""
    try:
        return (Path(home) / MARKER).read_text() == marker
    except OSError:
        return False
