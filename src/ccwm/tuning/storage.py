"""Where a study is kept: a journal file that a kill cannot break, or PostgreSQL within a bounded wait."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from filelock import BaseFileLock, FileLock
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from ccwm.cells import WORK
from ccwm.errors import UserError
from ccwm.seeds import named_seed
from ccwm.settings.tune import Tune

MISSED_HEARTBEATS = 4
"""Heartbeats that a process on PostgreSQL may miss before its trial counts as stale."""
CONNECT_SECONDS = 10
KEEPALIVE = "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
"""The server drops a host that vanished, and its locks with it, within a minute."""
SUM = "sum"
"""The key of a journal's line that has its checksum."""
experimental = partial(warnings.catch_warnings, action="ignore", category=ExperimentalWarning)
"""Within, Optuna does not warn that heartbeats, retries and plots are experimental."""


class StorageUnreachable(UserError):
    """The storage cannot be reached or read."""


def study_folder(study: str) -> Path:
    """`.work/tune/<study>`: locks, work directories and kept agents."""
    return WORK / "tune" / study


def journal_path(study: str) -> Path:
    """The journal of a study that needs no database."""
    return study_folder(study) / "journal.jsonl"


def shown_storage(tune: Tune) -> str:
    """The storage as a user may read it: no password."""
    if tune.storage is None:
        return str(journal_path(tune.study))
    return make_url(tune.storage).render_as_string(hide_password=True)


def open_storage(tune: Tune) -> BaseStorage:
    """The storage of ``tune.storage``, made on first use, by however many processes at once."""
    return _open_database(tune) if tune.storage else _open_journal(journal_path(tune.study))


def study_lock(tune: Tune) -> BaseFileLock | DatabaseLock:
    """The lock among all processes of a study, on one host or on several, freed when its holder dies."""
    if tune.storage:
        return DatabaseLock(tune.storage, tune.study)
    return FileLock(study_folder(tune.study) / "study.lock", thread_local=False)


@contextmanager
def storage_errors(tune: Tune) -> Iterator[None]:
    """Within, a storage that becomes unreachable is a UserError."""
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        message = f"tune.storage: {shown_storage(tune)} became unreachable ({_reason(error)})"
        hint = "when it is back, run the same command again, which resumes the trial that was running"
        raise StorageUnreachable(message, hint=hint) from None


class JournalLock:
    """The journal's write lock, which the kernel frees when its holder dies; it removes the line that one had torn."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._lock = FileLock(f"{journal}.lock", thread_local=False)

    def acquire(self) -> bool:
        """Hold the journal, and leave only whole lines in it."""
        self._lock.acquire()
        cut_torn_line(self._journal)
        return True

    def release(self) -> None:
        """Let the others write."""
        self._lock.release()


def cut_torn_line(journal: Path) -> None:
    """Truncate a journal after its last newline: whoever wrote the rest was killed, and was told of no success."""
    with journal.open("a+b") as file:
        file.seek(max(file.tell() - 1, 0))
        if file.read() not in (b"\n", b""):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            os.fsync(file.fileno())


class Journal(JournalFileBackend):
    """Optuna's journal, each line with a checksum of itself and of all before it."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write lines, under the journal's lock from the sum of the last line on."""
        self._lock.acquire()
        try:
            sums = [log.get(SUM, "") for log in _lines(Path(self._file_path))[-1:]] or [""]
            for log in logs:
                sums.append(_chained(log, sums[-1]))
            super().append_logs([{**log, SUM: of} for log, of in zip(logs, sums[1:], strict=True)])
        finally:
            self._lock.release()


def check_journal(journal: Path) -> None:
    """ValueError where a line was changed, lost or moved; lines of an older version at the start have no sum."""
    before = ""
    for number, log in enumerate(_lines(journal), 1):
        after = log.pop(SUM, "")
        if after != (_chained(log, before) if before or after else ""):
            raise ValueError(f"line {number} is not what was written there")
        before = after


def _lines(journal: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in journal.read_bytes().splitlines()]
    if not all(isinstance(log, dict) for log in found):
        raise ValueError("a line is no JSON object")
    return found


def _chained(log: dict[str, Any], before: str) -> str:
    return f"{zlib.crc32((before + json.dumps(log, sort_keys=True)).encode()):08x}"


class DatabaseLock:
    """An advisory lock of PostgreSQL, held by a connection of its own."""

    def __init__(self, address: str, name: str) -> None:
        self._engine = create_engine(address, connect_args=_connect_args(), poolclass=NullPool)
        self._key = named_seed("tune", "lock", name)
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        self._connection = self._engine.connect()
        self._connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": self._key})
        self._connection.commit()  # the lock is the session's, and an idle transaction would hold up the server
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Close the connection, if there is one, and free the lock with it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _open_journal(journal: Path) -> JournalStorage:
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        lock = JournalLock(journal)
        lock.acquire()  # reading does not lock, so that a torn line is removed before the first read
        try:
            check_journal(journal)
        finally:
            lock.release()
        return JournalStorage(Journal(str(journal), lock_obj=lock))  # type: ignore[arg-type]
    except Exception as error:  # Optuna checks no line: one that does not fit may raise anything
        message = f"tune.storage: {journal} cannot be written or is damaged ({error})"
        raise StorageUnreachable(message, hint="free it, restore it or move it away") from None


def _open_database(tune: Tune) -> RDBStorage:
    """Connect, and create the tables under a lock: processes that create them at the same moment would fail."""
    assert tune.storage is not None
    try:
        with DatabaseLock(tune.storage, "tables"), experimental():
            return RDBStorage(
                tune.storage,
                engine_kwargs={"pool_pre_ping": True, "connect_args": _connect_args()},
                heartbeat_interval=tune.heartbeat,
                grace_period=MISSED_HEARTBEATS * tune.heartbeat,
            )
    except (SQLAlchemyError, RuntimeError) as error:  # RuntimeError: tables of another version of Optuna
        message = f"tune.storage: {shown_storage(tune)} does not answer: {_reason(error)}"
        hint = "start it, or mend the address (`ccwm tune --storage …`, PGPASSWORD)"
        raise StorageUnreachable(message, hint=hint) from None


def _reason(error: Exception) -> str:
    return " ".join(str(getattr(error, "orig", None) or error.__cause__ or error).split())[:200]


def _connect_args() -> dict[str, object]:
    return {"connect_timeout": CONNECT_SECONDS, "options": KEEPALIVE}
