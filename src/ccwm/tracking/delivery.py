"""A run in the store, and each kind of record as a call that can safely be repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from ccwm.tracking import store
from ccwm.tracking.models import log_agent_model
from ccwm.tracking.spool import Identity, Record

ID_TAG = "ccwm.id"
"""Our own id of a run: it exists before the store answers, and finds a run whose creation was not acknowledged."""
PARENT_TAG = "ccwm.parent"
"""The parent that a run asked for, ours or MLflow's id, so that a parent sent later can still adopt it."""
NESTING_TAG = "mlflow.parentRunId"


class StoredRun(NamedTuple):
    """A run in the store."""

    client: MlflowClient
    experiment: str
    run_id: str


def open_run(identity: Identity) -> StoredRun:
    """The run of a spool in the store, which is found or made."""
    client = store.connect()
    experiment = store.experiment_id(client, identity.experiment)
    run_id = _find(client, experiment, identity.id) or _create(client, experiment, identity)
    return StoredRun(client, experiment, run_id)


def send(run: StoredRun, records: list[Record], copy: Path, progress: Callable[[int], None]) -> None:
    """Send one record, or several of metrics; ``copy`` is the directory that an artifact or an agent consists of."""
    (client, experiment, run_id), record = run, records[0]
    match record["kind"]:
        case "metrics":
            # With the time of their recording: MLflow stores an identical point once, however often it is sent.
            points = [
                Metric(key, value, record["time"], record["env_steps"])
                for record in records
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
            client.log_artifact(run_id, str(copy))
        case "agent" if copy.exists():
            log_agent_model(client, copy, experiment, run_id, name=record["name"], progress=progress)
        case "adopt":
            for child in filter(None, (_find(client, experiment, child) for child in record["runs"])):
                client.set_tag(child, NESTING_TAG, run_id)
        case "status" if record["value"] == "RUNNING":
            client.update_run(run_id, status="RUNNING")
        case "status":
            client.set_terminated(run_id, status=record["value"], end_time=record["time"])


def _find(client: MlflowClient, experiment: str, run_id: str) -> str | None:
    """MLflow's id of the run that is known by this id, ours or MLflow's; None if the experiment has no such run."""
    for key in (f"tags.`{ID_TAG}`", "attributes.run_id"):
        for run in client.search_runs([experiment], f"{key} = '{run_id}'", max_results=1):
            return str(run.info.run_id)
    return None


def _create(client: MlflowClient, experiment: str, identity: Identity) -> str:
    """Make the run under its parent, if the store has that, and over the children that were sent before it."""
    tags = {ID_TAG: identity.id}
    if identity.parent:
        tags[PARENT_TAG] = identity.parent
        if parent := _find(client, experiment, identity.parent):
            tags[NESTING_TAG] = parent
    run = client.create_run(experiment, start_time=identity.start_time, tags=tags, run_name=identity.name)
    for child in client.search_runs([experiment], f"tags.`{PARENT_TAG}` = '{identity.id}'"):
        client.set_tag(child.info.run_id, NESTING_TAG, run.info.run_id)
    return str(run.info.run_id)
