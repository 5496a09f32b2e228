"""What a run has recorded, on disk: an append-only journal, copied files, and how much of it the store has.

    <spool>/<id>/spool.json       identity of the run, MLflow's id once known, acknowledged bytes of the journal
    <spool>/<id>/journal.jsonl    one record a line
    <spool>/<id>/files/…          copies of artifacts that are not yet sent
    <spool>/<id>/rejected.jsonl   records that the store refused for good, with its reason

A record is in the journal (and survives kill -9) when ``append`` returns; the outbox fsyncs before it sends.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock, Timeout
from pydantic import Field, JsonValue

from ccwm.errors import UserError
from ccwm.files import write_atomically
from ccwm.settings.section import Section

Record = dict[str, Any]
RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
"""An id of a run, ours or MLflow's; it becomes a directory's name and part of a search."""


def now() -> int:
    """MLflow's clock: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Identity(Section):
    """The content of ``spool.json``; ``id`` is ours, ``mlflow_run_id`` the store's."""

    id: RunId
    experiment: str
    name: str
    parent: RunId | None = None
    start_time: int = Field(default_factory=now)
    mlflow_run_id: str | None = None
    acknowledged: int = 0


class SpoolBusyError(UserError):
    """Another process records into this spool, or sends it."""


class Spool:
    """One run's directory; its opener holds the lock until ``close``."""

    def __init__(self, directory: Path, *, wait: float = 0.0) -> None:
        """Open an existing spool; a last line that a crash tore is dropped, since its caller never came back."""
        self.directory = directory.absolute()  # the outbox outlives a caller's change of directory
        # Opened by one thread, released by another: the sender keeps it while a call to the store still hangs.
        self._lock = FileLock(directory / "lock", thread_local=False)
        try:
            self._lock.acquire(timeout=wait)
        except Timeout:
            raise SpoolBusyError(f"{directory} is held by another process", hint="end that run first") from None
        self.identity = read_identity(directory)
        self._journal = os.open(directory / "journal.jsonl", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        self._appending = threading.Lock()
        self._size = (directory / "journal.jsonl").read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._journal, self._size)

    @classmethod
    def create(cls, root: Path, run_id: str, *, wait: float = 0.0, **identity: JsonValue) -> Spool:
        """The spool of the run with this id under ``root``, made on first use."""
        described = Identity.model_validate({"id": run_id, **identity})
        directory = root / described.id
        if not (directory / "spool.json").is_file():
            directory.mkdir(parents=True, exist_ok=True)
            write_atomically(directory / "spool.json", described.model_dump_json().encode())
        return cls(directory, wait=wait)

    @property
    def unsent(self) -> int:
        """Bytes of the journal that the store has not acknowledged."""
        return self._size - self.identity.acknowledged

    @property
    def rejected(self) -> Path | None:
        """The file of what the store has refused for good, if there is any."""
        path = self.directory / "rejected.jsonl"
        return path if path.exists() else None

    def append(self, kind: str, **fields: JsonValue) -> None:
        """Write one record, stamped with the time, to the journal; if the disk is full the journal stays as it was."""
        line = json.dumps({"kind": kind, "time": now(), **fields}, separators=(",", ":")).encode() + b"\n"
        with self._appending:
            try:
                written = 0
                while written < len(line):
                    written += os.write(self._journal, line[written:])
            except OSError:
                os.ftruncate(self._journal, self._size)
                raise
            self._size += len(line)

    def fsync(self) -> int:
        """Force the journal to the disk and return how many bytes of it are safe."""
        size = self._size
        os.fsync(self._journal)
        return size

    def records(self, start: int = 0) -> Iterator[tuple[Record, int]]:
        """The records from byte ``start`` on, each with the offset where it ends."""
        with (self.directory / "journal.jsonl").open("rb") as journal:
            journal.seek(start)
            for line in journal:
                if not line.endswith(b"\n"):
                    return  # being written at this moment
                start += len(line)
                yield json.loads(line), start

    def identify(self, **changes: JsonValue) -> None:
        """Replace fields of ``spool.json`` atomically."""
        changed = self.identity.model_copy(update=changes)
        write_atomically(self.directory / "spool.json", changed.model_dump_json().encode())
        self.identity = changed

    def keep_file(self, path: Path) -> str:
        """Copy a file or a directory into the spool; returns its place relative to the spool."""
        (self.directory / "files").mkdir(exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=self.directory / "files")) / path.name
        if path.is_dir():
            shutil.copytree(path, place)
        else:
            shutil.copyfile(path, place)
        return str(place.relative_to(self.directory))

    def drop_file(self, place: str) -> None:
        """Remove a copy that the store has."""
        shutil.rmtree((self.directory / place).parent, ignore_errors=True)

    def reject(self, record: Record, reason: str) -> None:
        """Keep a record that the store will never take, so that it does not hold up the others."""
        with (self.directory / "rejected.jsonl").open("a") as rejected:
            rejected.write(json.dumps({"reason": reason, "record": record}) + "\n")

    def close(self, *, remove: bool = False) -> None:
        """Release the spool; ``remove`` drops it if the store has all of it."""
        os.close(self._journal)
        self._journal = -1  # the number may soon name another file, which a late record must not hit
        if remove and not self.unsent and not self.rejected:
            shutil.rmtree(self.directory, ignore_errors=True)
        self._lock.release()


def read_identity(directory: Path) -> Identity:
    """Which run a spool directory belongs to, and how much of it was sent."""
    return Identity.model_validate_json((directory / "spool.json").read_text())
