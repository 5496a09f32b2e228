"""`ccwm tracking sync`: send what an unreachable store left on disk."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ccwm.errors import UserError
from ccwm.tracking.outbox import Outbox, root_cause
from ccwm.tracking.spool import Held, Spool, read_identity
from ccwm.tracking.store import refuse_damaged


class SyncReport(NamedTuple):
    """The runs that are now whole in the store (MLflow's ids), and why each other spool is still on disk."""

    sent: list[str]
    kept: dict[Path, str]


def sync(root: Path) -> SyncReport:
    """Send every unsent spool below ``root``, oldest run first; a run whose process is gone ends as KILLED."""
    refuse_damaged()
    report = SyncReport([], {})
    trouble: str | None = None
    directories = [path.parent for path in root.rglob("spool.json")]
    begun = dict[Path, int]()
    for directory in directories:
        try:
            begun[directory] = read_identity(directory).start_time
        except UserError as error:
            report.kept[directory] = str(error)
    for directory in sorted(begun, key=begun.__getitem__):
        try:
            spool = Spool(directory)
        except Held:
            report.kept[directory] = "its run is still running, and sends it itself"
            continue
        except UserError as error:
            report.kept[directory] = str(error)
            continue
        if spool.status == "RUNNING":  # kill -9 or a power cut left it no time to say how it ended
            spool.set_status("KILLED")
        if spool.unsent:
            try:
                if trouble is None:
                    Outbox(spool).drain()
            except Exception as error:  # any failure of a store leaves the spool as it is, to be sent another time
                trouble = root_cause(error)
            if reason := trouble or (spool.rejected and f"the store refused the records in {spool.rejected}"):
                report.kept[directory] = str(reason)
            else:
                report.sent.append(str(spool.identity.mlflow_run_id))
        spool.close()
    return report
