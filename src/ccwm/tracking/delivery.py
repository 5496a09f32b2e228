"""From a spool to the store: which run it is there, and each kind of record as a call that can safely be repeated."""

from __future__ import annotations

import math
import time
from itertools import takewhile

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from ccwm.tracking import store
from ccwm.tracking.models import log_agent_model
from ccwm.tracking.spool import Record, Spool

ID_TAG = "ccwm.id"
"""Our own id of a run: it exists before the store answers, and finds a run whose creation was not acknowledged."""
PARENT_TAG = "ccwm.parent"
"""The parent that a run asked for, ours or MLflow's id, so that a parent sent later can still adopt it."""
NESTING_TAG = "mlflow.parentRunId"

RECORDS_A_CALL = 50
"""Metrics sent at once: MLflow takes 1,000 values a call, and refused calls are sent record by record."""
REFUSED = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "MALFORMED_REQUEST")
"""Answers that sending again will not change; everything else may pass."""


def find_run(client: MlflowClient, experiment: str, run_id: str) -> str | None:
    """MLflow's id of the run that is known by this id, ours or MLflow's; None if the experiment has no such run."""
    for key in (f"tags.`{ID_TAG}`", "attributes.run_id"):
        for run in client.search_runs([experiment], f"{key} = '{run_id}'", max_results=1):
            return str(run.info.run_id)
    return None


class Delivery:
    """Brings one spool to the store; it raises every error and acknowledges only what the store has taken."""

    def __init__(self, spool: Spool) -> None:
        """Without touching the store."""
        self._spool = spool
        self._bound: tuple[MlflowClient, str, str] | None = None
        self._furthest = (-1, 0)
        self.last_progress = -math.inf

    def bind(self) -> tuple[MlflowClient, str, str]:
        """The client, the experiment and the run in the store, which is found or made on the first call."""
        if self._bound is None:
            client = store.connect()
            identity = self._spool.identity
            experiment = store.experiment_id(client, identity.experiment)
            run_id = find_run(client, experiment, identity.id) or self._create(client, experiment)
            if run_id != identity.mlflow_run_id:
                # Another store than before knows nothing yet, so all of the journal is its due.
                self._spool.identify(mlflow_run_id=run_id, acknowledged=0)
            self._bound = client, experiment, run_id
            self._progress()
        return self._bound

    def _create(self, client: MlflowClient, experiment: str) -> str:
        """Make the run under its parent, if the store has that, and over the children that were sent before it."""
        identity = self._spool.identity
        tags = {ID_TAG: identity.id}
        if identity.parent:
            tags[PARENT_TAG] = identity.parent
            if parent := find_run(client, experiment, identity.parent):
                tags[NESTING_TAG] = parent
        run = client.create_run(experiment, start_time=identity.start_time, tags=tags, run_name=identity.name)
        for child in client.search_runs([experiment], f"tags.`{PARENT_TAG}` = '{identity.id}'"):
            client.set_tag(child.info.run_id, NESTING_TAG, run.info.run_id)
        return str(run.info.run_id)

    def drain(self) -> None:
        """Send every record that was in the journal when the call started."""
        safe = self._spool.fsync()
        self.bind()
        pending = [found for found in self._spool.records(self._spool.identity.acknowledged) if found[1] <= safe]
        while pending:
            metrics = list(takewhile(lambda found: found[0]["kind"] == "metrics", pending[:RECORDS_A_CALL]))
            count = len(metrics) or 1
            group, end = [record for record, _ in pending[:count]], pending[count - 1][1]
            pending = pending[count:]
            self._send(group)
            self._spool.identify(acknowledged=end)
            self._progress()
            if "file" in group[0]:
                self._spool.drop_file(group[0]["file"])

    def _progress(self, step: int = 0) -> None:
        """Note when we last got further than ever before; an attempt that fails at the same place is no progress."""
        reached = self._spool.identity.acknowledged, step
        if reached > self._furthest:
            self._furthest = reached
            self.last_progress = time.monotonic()

    def _send(self, group: list[Record]) -> None:
        """Send some records at once; those that the store refuses for good are set aside, one by one."""
        try:
            self._call(group)
        except MlflowException as error:
            if error.error_code not in REFUSED:
                raise
            if len(group) == 1:
                self._spool.reject(group[0], str(error))
            else:
                for record in group:
                    self._send([record])

    def _call(self, group: list[Record]) -> None:
        client, experiment, run_id = self.bind()
        record = group[0]
        copy = self._spool.directory / record.get("file", "")
        match record["kind"]:
            case "metrics":
                # With the time of their recording: MLflow stores an identical point once, however often it is sent.
                points = [
                    Metric(key, value, record["time"], record["env_steps"])
                    for record in group
                    for key, value in record["values"].items()
                ]
                client.log_batch(run_id, metrics=points)
            case "settings":
                known = client.get_run(run_id).data.params  # MLflow refuses a second value, a resumed run has the first
                params = [Param(key, value) for key, value in record["params"].items() if key not in known]
                client.log_batch(run_id, params=params)
                client.log_dict(run_id, record["values"], "settings.json")
            case "tags":
                client.log_batch(run_id, tags=[RunTag(*tag) for tag in record["values"].items()])
            case "artifact" if copy.exists():  # it leaves the spool once a store has it: a second store finds none
                client.log_artifact(run_id, str(copy), record["folder"])
            case "agent" if copy.exists():
                log_agent_model(client, copy, experiment, run_id, name=record["name"], progress=self._progress)
            case "status" if record["value"] == "RUNNING":
                client.update_run(run_id, status="RUNNING")
            case "status":
                client.set_terminated(run_id, status=record["value"], end_time=record["time"])


def root_cause(error: BaseException) -> str:
    """The first line of what went wrong underneath: `ConnectionRefusedError: [Errno 111] Connection refused`."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return f"{type(error).__name__}: {error}".splitlines()[0]
