"""MLflow tracking: the only importer of mlflow.

``run`` is what stages use; everything it records goes to a spool on disk (``spool``), and a background thread
(``outbox``) brings it to the store (``store``, ``delivery``, ``models``). ``sync`` sends what stayed behind.
"""

import os

# mlflow reads this one while it is imported; a training run has no business calling home.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from ccwm.tracking.run import Run, stage_run
from ccwm.tracking.store import connect, tracking_uri
from ccwm.tracking.sync import SyncReport, sync

__all__ = ["Run", "SyncReport", "connect", "stage_run", "sync", "tracking_uri"]
