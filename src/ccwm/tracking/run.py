"""One stage execution as one MLflow run, even when the store is unreachable or the process is killed."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH, MAX_PARAM_VAL_LENGTH
from pydantic import JsonValue

from ccwm.cells import WORK, Cell
from ccwm.settings.schema import Tracking
from ccwm.tracking.git import git_state
from ccwm.tracking.models import model_name
from ccwm.tracking.outbox import Outbox
from ccwm.tracking.spool import Identity, Spool


class Run:
    """Records one stage execution; every call returns once it is on disk, and none waits for the store."""

    def __init__(self, cell: Cell, spool: Spool) -> None:
        """Points of an earlier attempt are remembered, since a resumed stage repeats its last steps."""
        self.cell = cell
        self._spool = spool
        points = (record for record, _ in spool.records() if record["kind"] == "metrics")
        self._repeated = {(key, record["env_steps"]) for record in points for key in record["values"]}

    @property
    def run_id(self) -> str:
        """MLflow's id, or our own until the store has answered."""
        return self._spool.identity.mlflow_run_id or self._spool.identity.id

    def log_metrics(self, metrics: Mapping[str, float], *, env_steps: int) -> None:
        """Record values at this many environment steps; a point that an earlier attempt recorded is not repeated."""
        values: dict[str, JsonValue] = {
            key: float(value) for key, value in metrics.items() if (key, env_steps) not in self._repeated
        }
        if values:
            self._spool.append("metrics", env_steps=env_steps, values=values)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Record tags; a later value of a tag replaces the earlier one."""
        self._spool.append("tags", values=dict(tags))

    def log_artifact(self, folder: Path) -> None:
        """Record a copy of a directory as an artifact of its name."""
        self._spool.append("artifact", file=self._spool.keep(folder))

    def log_agent(self, directory: Path) -> None:
        """Record an exported agent as the model of this run, registered as ccwm-<task>-<variant>."""
        name = model_name(self.cell.task, self.cell.variant)
        self._spool.append("agent", file=self._spool.keep(directory), name=name)


@contextmanager
def stage_run(
    cell: Cell,
    tracking: Tracking,
    *,
    settings: Mapping[str, JsonValue],
    tags: Mapping[str, str],
    run_id: str | None = None,
    parent_run_id: str | None = None,
    title: str = "",
    spool: Path = WORK / "spool",
) -> Iterator[Run]:
    """A run for the length of the block, nested under ``parent_run_id``; a known ``run_id`` resumes that run.

    It ends FINISHED, KILLED (Ctrl-C, SystemExit 130 or 143) or FAILED. An unreachable store costs at most
    ``tracking.timeout`` seconds at the start and at the end; what it has not got stays in ``spool``.
    """
    own_id, name = run_id or uuid.uuid4().hex, title or cell.title
    identity = Identity(id=own_id, experiment=tracking.experiment, name=name, parent=parent_run_id)
    opened = Spool(spool / identity.id, identity, wait=tracking.timeout)
    run = Run(cell, opened)
    commit, dirty = git_state()
    opened.set_status("RUNNING")
    run.set_tags({**cell.tags, **tags, "git_commit": commit, "git_dirty": dirty, "mlflow.source.git.commit": commit})
    opened.append("settings", params=dict(flat_params(settings)), values=dict(settings))
    outbox = Outbox(opened)
    outbox.start(tracking.timeout)
    if outbox.trouble:
        _say(f"tracking store unreachable ({outbox.trouble}); the run is kept in {opened.directory} meanwhile")
    status = "FINISHED"
    try:
        yield run
    except BaseException as error:
        status = _status_after(error)
        raise
    finally:
        opened.set_status(status)
        if not outbox.close():
            trouble, kept = outbox.trouble or "too slow", f"{opened.unsent} bytes of run {run.run_id} are kept in"
            _say(f"tracking store unreachable ({trouble}); {kept} {opened.directory}: `ccwm tracking sync` sends them")
        if opened.rejected:
            _say(f"the tracking store refused some records of run {run.run_id}: {opened.rejected}")


def flat_params(settings: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted keys and text: {"model": {"depth": 32}} → ("model.depth", "32")."""
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from flat_params(value, f"{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            yield name[:MAX_ENTITY_KEY_LENGTH], text[:MAX_PARAM_VAL_LENGTH]


def _status_after(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return {None: "FINISHED", 0: "FINISHED", 130: "KILLED", 143: "KILLED"}.get(error.code, "FAILED")  # type: ignore[arg-type]
    return "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
