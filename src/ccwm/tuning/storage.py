"""Where a study is kept: a journal file that a kill cannot break, or PostgreSQL within a bounded wait."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from ccwm.errors import UserError
from ccwm.settings.schema import Settings
from ccwm.tracking.stage import WORK

RETRIES = 5
"""How often a trial whose process was killed is begun again, before it counts as failed: it may be what kills them."""
MISSED = 4
"""Heartbeats that a process on PostgreSQL may miss before its trial is taken for dead."""
CONNECT_SECONDS = 10
SCHEMA_SECONDS = 30.0


class StorageAway(UserError, ConnectionError):
    """The storage cannot be reached or read."""


def study_folder(study: str) -> Path:
    """`.work/tune/<study>`: locks, work directories and kept agents."""
    return WORK / "tune" / study


def study_storage(settings: Settings) -> BaseStorage:
    """The storage that the settings name."""
    tune = settings.tune
    return open_storage(tune.storage, _journal_path(tune.study), heartbeat=tune.heartbeat)


def shown_storage(settings: Settings) -> str:
    """The storage that the settings name, as a person may read it."""
    return shown(settings.tune.storage, _journal_path(settings.tune.study))


@contextmanager
def lost_storage(settings: Settings) -> Iterator[None]:
    """Within, a storage that goes away is told in a sentence."""
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        reason = " ".join(str(error.__cause__ or error).split())[:200]
        raise StorageAway(
            f"tune.storage: {shown_storage(settings)} went away ({reason}); when it is back, run the same command "
            f"again: the trial that was running goes on"
        ) from None


class WholeLines:
    """The journal's lock, which the kernel takes back from a killed process; a line that it had torn is cut off."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._lock = FileLock(f"{journal}.lock", thread_local=False)

    def acquire(self) -> bool:
        """Hold the journal, and leave only whole lines in it."""
        self._lock.acquire()
        if self._journal.exists():
            cut_torn_line(self._journal)
        return True

    def release(self) -> None:
        """Let the others write."""
        self._lock.release()


def cut_torn_line(journal: Path) -> None:
    """Truncate a journal after its last newline: whoever wrote the rest was killed, and was told of no success."""
    with journal.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end:
            start = max(end - 4096, 0)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            file.truncate(end)
            os.fsync(file.fileno())


def open_storage(address: str | None, journal: Path, *, heartbeat: int) -> BaseStorage:
    """The storage at a PostgreSQL address, or the journal; both are made on first use, by however many at once."""
    return _open_database(address, heartbeat) if address else _open_journal(journal)


def shown(address: str | None, journal: Path) -> str:
    """The storage as a person may read it: no password."""
    return make_url(address).render_as_string(hide_password=True) if address else str(journal)


def _journal_path(study: str) -> Path:
    """The journal of a study that needs no database."""
    return study_folder(study) / "journal.jsonl"


def _open_journal(journal: Path) -> JournalStorage:
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        lock = WholeLines(journal)
        lock.acquire()  # reading does not lock, so that a torn line is cut before the first read
        lock.release()
        return JournalStorage(JournalFileBackend(str(journal), lock_obj=lock))  # type: ignore[arg-type]
    except OSError as error:
        raise StorageAway(f"tune.storage: {journal} cannot be written ({error.strerror}): free it or move it") from None
    except (ValueError, KeyError) as error:
        raise StorageAway(f"tune.storage: {journal} is damaged ({error}): restore it, or move it away") from None


def _open_database(address: str, heartbeat: int) -> RDBStorage:
    """Connect; several processes that create the tables at the same moment get in each other's way and try again."""
    reached = False
    deadline = time.monotonic() + SCHEMA_SECONDS
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)
                return RDBStorage(
                    address,
                    engine_kwargs={"pool_pre_ping": True, "connect_args": {"connect_timeout": CONNECT_SECONDS}},
                    heartbeat_interval=heartbeat,
                    grace_period=MISSED * heartbeat,
                    heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=RETRIES),
                )
        except (SQLAlchemyError, AssertionError, RuntimeError) as error:
            reached = reached or not isinstance(error, SQLAlchemyError) or not _is_connection_error(error)
            if not reached or time.monotonic() > deadline:
                raise StorageAway(
                    f"tune.storage: {shown(address, Path())} does not answer: {_first_line(error)}; "
                    f"start it, or mend the address (`ccwm tune --storage …`, PGPASSWORD)"
                ) from None
            time.sleep(0.2)


def _is_connection_error(error: SQLAlchemyError) -> bool:
    cause = getattr(error, "orig", None)
    return type(cause).__name__ in ("OperationalError", "ConnectionTimeout")


def _first_line(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    return " ".join(str(cause).split())
