"""What a run has recorded, on disk: an append-only journal, copied files, and how much of it the store has.

    <spool>/<id>/spool.json       identity of the run, MLflow's id once known, acknowledged bytes of the journal
    <spool>/<id>/journal.jsonl    one record a line
    <spool>/<id>/files/…          copies of directories that are not yet sent
    <spool>/<id>/rejected.jsonl   records that the store refused for good, with its reason

A record is in the journal (and survives kill -9) when ``append`` returns; the outbox fsyncs before it sends. Every
record, and ``spool.json``, has a checksum; spools of an older version have none, and stay as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock, Timeout
from pydantic import Field, JsonValue, ValidationError

from ccwm.checksums import is_sealed, seal, unseal
from ccwm.errors import UserError
from ccwm.files import append_line, write_atomically
from ccwm.settings.section import Section

Record = dict[str, Any]
RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
"""An id of a run, ours or MLflow's; it becomes a directory's name and part of a search."""


def now() -> int:
    """MLflow's clock: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


FIELDS: dict[str, dict[str, type]] = {
    "metrics": {"env_steps": int, "values": dict},
    "settings": {"params": dict, "values": dict},
    "tags": {"values": dict},
    "artifact": {"file": str},
    "agent": {"file": str, "name": str},
    "adopt": {"runs": list},
    "status": {"value": str},
}
"""What a record of each kind has beside its time."""


class Held(UserError):
    """Another process has the spool open."""


class Identity(Section):
    """The content of ``spool.json``; ``id`` is ours, ``mlflow_run_id`` the store's."""

    id: RunId
    experiment: str
    name: str
    parent: RunId | None = None
    start_time: int = Field(default_factory=now)
    mlflow_run_id: str | None = None
    acknowledged: int = 0
    size: int = 0
    """Bytes that the journal had when its spool was last closed: a shorter one has lost records."""


class Spool:
    """One run's directory; its opener holds the lock until ``close``."""

    def __init__(self, directory: Path, identity: Identity | None = None, *, wait: float = 0.0) -> None:
        """Open a spool, or make that of ``identity``; a last line that a crash tore is overwritten by the next one."""
        if identity is not None and not (directory / "spool.json").is_file():
            directory.mkdir(parents=True, exist_ok=True)
            write_atomically(directory / "spool.json", seal(identity.model_dump_json().encode()))
        self.directory = directory.absolute()  # the outbox outlives a caller's change of directory
        # Opened by one thread, released by another: the sender keeps it while a call to the store still hangs.
        self._lock = FileLock(directory / "lock", thread_local=False)
        try:
            self._lock.acquire(timeout=wait)
        except Timeout:
            raise Held(f"{directory} is held by another process", hint="end that run first") from None
        try:
            self._read(directory)
        except BaseException:
            self._lock.release()
            raise

    def _read(self, directory: Path) -> None:
        self.identity = read_identity(directory)
        self._sealed = is_sealed((directory / "spool.json").read_bytes())
        self._appending = threading.Lock()
        self._journal = self.directory / "journal.jsonl"
        self._journal.touch()
        self._size = self._journal.read_bytes().rfind(b"\n") + 1
        if self._size < max(self.identity.size, self.identity.acknowledged):
            raise UserError(f"{self._journal} is damaged (its end is missing)", hint=_give_up(directory))
        states = [record["value"] for record, _ in self.records() if record["kind"] == "status"]
        self.status = states[-1] if states else "RUNNING"

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
            if not self._lock.is_locked:
                raise ValueError(f"{self.directory} is closed, and may be another process's by now")
            line = seal(line, self._size) if self._sealed else line
            self._size = append_line(self._journal, line, self._size, durable=False)

    def set_status(self, status: str) -> None:
        """Record how the run is: RUNNING, or how it ended."""
        self.append("status", value=status)
        self.status = status

    def records(self, start: int = 0) -> Iterator[tuple[Record, int]]:
        """The records from byte ``start`` on, forced to the disk, each with the offset where it ends."""
        size = self._size
        with self._journal.open("rb") as journal:
            os.fsync(journal.fileno())
            journal.seek(start)
            lines = journal.read(size - start).splitlines(keepends=True)
        for line in lines:
            if (record := parse_record(line, start, sealed=self._sealed)) is None:
                message = f"{self._journal}: the line at byte {start} is damaged"
                raise UserError(message, hint=_give_up(self.directory))
            start += len(line)
            yield record, start

    def identify(self, **changes: JsonValue) -> None:
        """Replace fields of ``spool.json`` atomically."""
        changed = self.identity.model_copy(update=changes)
        content = changed.model_dump_json().encode()
        write_atomically(self.directory / "spool.json", seal(content) if self._sealed else content)
        self.identity = changed

    def keep(self, folder: Path) -> str:
        """Copy a directory into the spool; returns its place relative to the spool."""
        place = Path("files", uuid.uuid4().hex, folder.name)
        shutil.copytree(folder, self.directory / place)
        return str(place)

    def drop(self, place: str) -> None:
        """Remove a copy that the store has."""
        shutil.rmtree((self.directory / place).parent, ignore_errors=True)

    def reject(self, record: Record, reason: str) -> None:
        """Keep a record that the store will never take, so that it does not hold up the others."""
        with (self.directory / "rejected.jsonl").open("a") as rejected:
            rejected.write(json.dumps({"reason": reason, "record": record}) + "\n")

    def close(self) -> None:
        """Release the spool; that of a finished run goes, if the store has all of it."""
        try:
            if self.status == "FINISHED" and not self.unsent and not self.rejected:
                shutil.rmtree(self.directory, ignore_errors=True)
            elif self.identity.size != self._size:
                self.identify(size=self._size)
        finally:
            with self._appending:
                self._lock.release()


def parse_record(line: bytes, at: int, *, sealed: bool) -> Record | None:
    """A line of the journal that starts at byte ``at``; None where it is none, or another than was written there."""
    if is_sealed(line) != sealed:
        return None
    try:
        record: Any = json.loads(unseal(line, at) if sealed else line)
    except (ValueError, RecursionError):
        return None
    fields = FIELDS.get(str(record.get("kind"))) if isinstance(record, dict) else None
    if fields is None:
        return None
    wanted = {"kind": str, "time": int, **fields}
    return record if all(isinstance(record.get(name), kind) for name, kind in wanted.items()) else None


def read_identity(directory: Path) -> Identity:
    """Which run a spool directory belongs to, and how much of it was sent."""
    path = directory / "spool.json"
    try:
        content = path.read_bytes()
        return Identity.model_validate_json(unseal(content) if is_sealed(content) else content)
    except (ValueError, FileNotFoundError) as error:
        missing = isinstance(error, FileNotFoundError)
        told = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "it is missing" if missing else error
        raise UserError(f"{path} is damaged ({told})", hint=_give_up(directory)) from None


def _give_up(directory: Path) -> str:
    return f"restore it, or remove {directory} to give up what it holds"
