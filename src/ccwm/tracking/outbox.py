"""From a spool to the store: at once, or by a background thread, so that training never waits for the network."""

from __future__ import annotations

import threading
import time
from itertools import takewhile

from mlflow.exceptions import MlflowException

from ccwm.errors import UserError
from ccwm.tracking.delivery import StoredRun, open_run, send
from ccwm.tracking.spool import Record, Spool

PERIOD = 1.0
LONGEST_PAUSE = 30.0
RECORDS_A_CALL = 50
"""Metrics sent at once: MLflow takes 1,000 values a call, and refused calls are sent record by record."""
REFUSED = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "MALFORMED_REQUEST")
"""Answers that sending again will not change; everything else may pass."""


class Outbox:
    """Sends one spool and acknowledges only what the store has taken."""

    def __init__(self, spool: Spool) -> None:
        """Without touching the store."""
        self._spool = spool
        self._run: StoredRun | None = None
        self._answered, self._closing = threading.Event(), threading.Event()
        self._furthest, self._last_progress, self._wait = (-1, 0), time.monotonic(), 0.0
        # A daemon: a store that hangs must not keep a finished process alive.
        self._thread = threading.Thread(target=self._work, name="ccwm-outbox", daemon=True)
        self.trouble: str | None = None

    def start(self, wait: float) -> None:
        """Send the spool as it grows; wait at most ``wait`` seconds for the store's first answer or refusal."""
        self._wait = wait
        self._thread.start()
        if not self._answered.wait(wait):
            self.trouble = f"no answer within {wait:g} s"

    def close(self) -> bool:
        """Send the rest, until the store gives no sign of life for ``wait`` seconds; true if it has everything."""
        self._last_progress = time.monotonic()
        self._closing.set()
        while self._thread.is_alive() and self._patience:
            self._thread.join(self._patience)
        self._thread.join(PERIOD)  # between two attempts it ends at once and frees the spool; a hanging one may not
        return not self._thread.is_alive() and not self._spool.unsent

    def drain(self) -> None:
        """Send every record that was in the journal when the call started; raises what goes wrong."""
        run = self._run or self._open_run()
        pending = list(self._spool.records(self._spool.identity.acknowledged))
        while pending:
            metrics = takewhile(lambda found: found[0]["kind"] == "metrics", pending[:RECORDS_A_CALL])
            group = list(metrics) or pending[:1]
            pending = pending[len(group) :]
            self._send(run, [record for record, _ in group])
            record, end = group[-1]
            self._spool.identify(acknowledged=end)
            self._progress()
            if "file" in record:
                self._spool.drop(record["file"])

    def _open_run(self) -> StoredRun:
        """Find or make the run in the store."""
        self._run = open_run(self._spool.identity)
        if self._run.run_id != self._spool.identity.mlflow_run_id:
            # Another store than before knows nothing yet, so all of the journal is its due.
            self._spool.identify(mlflow_run_id=self._run.run_id, acknowledged=0)
        self._progress()
        self._answered.set()
        return self._run

    def _send(self, run: StoredRun, records: list[Record]) -> None:
        """Send some records at once; those that the store refuses for good are set aside, one by one."""
        try:
            send(run, records, self._spool.directory / records[0].get("file", ""), self._progress)
        except MlflowException as error:
            if error.error_code not in REFUSED:
                raise
            if len(records) == 1:
                self._spool.reject(records[0], str(error))
            else:
                for record in records:
                    self._send(run, [record])

    def _progress(self, step: int = 0) -> None:
        """Note when we last got further than ever before; an attempt that fails at the same place is no progress."""
        reached = self._spool.identity.acknowledged, step
        if reached > self._furthest:
            self._furthest, self._last_progress = reached, time.monotonic()

    @property
    def _patience(self) -> float:
        """Seconds that are left for a sign of life."""
        return max(0.0, self._last_progress + self._wait - time.monotonic())

    def _work(self) -> None:
        pause = PERIOD
        while not self._closing.is_set() or (self._spool.unsent and self._patience):
            try:
                self.drain()
                self.trouble, pause = None, PERIOD
            except Exception as error:  # any failure of a store or a network: the run continues and we try again
                self.trouble, pause = root_cause(error), min(2 * pause, LONGEST_PAUSE)
                self._answered.set()
            if not self._closing.is_set():
                self._closing.wait(pause)
            elif self._spool.unsent:
                time.sleep(PERIOD / 2)
        self._spool.close()


def root_cause(error: BaseException) -> str:
    """The first line of what went wrong underneath: `ConnectionRefusedError: [Errno 111] Connection refused`."""
    while not isinstance(error, UserError) and (cause := error.__cause__ or error.__context__):
        error = cause
    if isinstance(error, UserError):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
