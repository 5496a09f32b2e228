"""`ccwm tracking sync`: send what a store that was away left on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ccwm.tracking.sending import Delivery, root_cause
from ccwm.tracking.spool import Spool, SpoolBusyError, read_identity


@dataclass(frozen=True)
class Kept:
    """A spool that is still on disk, and why."""

    directory: Path
    reason: str


@dataclass(frozen=True)
class SyncReport:
    """The runs that are now whole in the store (MLflow's ids), and the spools that are not."""

    sent: tuple[str, ...]
    kept: tuple[Kept, ...]


def sync(spool_root: Path) -> SyncReport:
    """Send every unsent spool below ``spool_root``, oldest run first; a run whose process is gone ends as KILLED."""
    sent: list[str] = []
    kept: list[Kept] = []
    directories = sorted((path.parent for path in spool_root.rglob("spool.json")), key=_start_time)
    away: str | None = None
    for directory in directories:
        try:
            spool = Spool(directory)
        except SpoolBusyError:
            kept.append(Kept(directory, "its run is still going on, and sends it itself"))
            continue
        status = _last_status(spool)
        if status != "RUNNING" and not spool.unsent:
            spool.close()
            continue
        if status == "RUNNING":
            spool.append("status", value="KILLED")
        away = away or _send(spool)
        if away:
            kept.append(Kept(directory, away))
        elif spool.rejected:
            kept.append(Kept(directory, "the store refused the records in rejected.jsonl"))
        else:
            sent.append(str(spool.identity.mlflow_run_id))
        spool.close(remove=status == "FINISHED" and not away and not spool.rejected)
    return SyncReport(tuple(sent), tuple(kept))


def _send(spool: Spool) -> str | None:
    """Why the store did not take all of it, if it did not."""
    try:
        Delivery(spool).drain()
    except Exception as error:  # any failure of a store leaves the spool as it is, to be sent another time
        return root_cause(error)
    return None


def _start_time(directory: Path) -> int:
    return read_identity(directory).start_time


def _last_status(spool: Spool) -> str:
    """How the last attempt ended; RUNNING if kill -9 or a power cut left it no time to say."""
    states = [str(record["value"]) for record, _ in spool.records() if record["kind"] == "status"]
    return states[-1] if states else "RUNNING"
