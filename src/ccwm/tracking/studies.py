"""Studies as runs above their cells, so that MLflow's views compare variants and not single seeds."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable
from pathlib import Path

from ccwm.cells import WORK
from ccwm.report.summaries import Summary
from ccwm.settings.schema import Tracking
from ccwm.tracking.outbox import Outbox, root_cause
from ccwm.tracking.run import Run
from ccwm.tracking.spool import Identity, Spool


def log_studies(report: Run, tracking: Tracking, found: Iterable[Summary], *, spool: Path = WORK / "spool") -> None:
    """A run for each summary, over the trainings that it is about; its tag `report` names the run that made it.

    It has no parent: MLflow's charts leave out the runs below one that is folded up. Each is on disk before it is sent.
    After the first failure of the store the others stay there, and `ccwm tracking sync` sends them.
    """
    reached = True
    for summary in found:
        identity = Identity(id=uuid.uuid4().hex, experiment=tracking.experiment, name=summary.title)
        opened = Spool(spool / identity.id, identity)
        opened.append("tags", values={**summary.tags, "report": report.run_id})
        for env_steps, values in summary.points.items():
            opened.append("metrics", env_steps=env_steps, values=dict(values))
        opened.append("adopt", runs=list(summary.runs))
        opened.set_status("FINISHED")
        try:
            if reached:
                Outbox(opened).drain()
        except Exception as error:  # any failure of a store leaves the spool as it is, to be sent another time
            reached = False
            kept = f"the runs of studies are kept in {spool}: `ccwm tracking sync` sends them"
            print(f"tracking store unreachable ({root_cause(error)}); {kept}", file=sys.stderr, flush=True)
        opened.close()
