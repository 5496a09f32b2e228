"""One stage execution as one MLflow run, whatever happens to the store or to the process."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH, MAX_PARAM_VAL_LENGTH
from pydantic import JsonValue

from ccwm.cells import Cell
from ccwm.tracking.git import git_state
from ccwm.tracking.models import digest, model_name
from ccwm.tracking.outbox import Outbox
from ccwm.tracking.spool import Spool, find_spool


class Run:
    """Records one stage execution; every call returns once it is on disk, and none waits for the store."""

    def __init__(self, cell: Cell, spool: Spool) -> None:
        """Points of an earlier attempt are remembered, since a resumed stage repeats its last steps."""
        self.cell = cell
        self._spool = spool
        self._repeated = {
            (key, record["env_steps"])
            for record, _ in spool.records()
            if record["kind"] == "metrics"
            for key in record["values"]  # type: ignore[union-attr]
        }

    @property
    def run_id(self) -> str:
        """MLflow's id, or our own until the store has answered; both are accepted wherever a run id is."""
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

    def log_artifact(self, path: Path, folder: str | None = None) -> None:
        """Record a copy of a file, or of a directory under its own name, in the run's artifact ``folder``."""
        self._spool.append("artifact", file=self._spool.keep_file(path), folder=folder)

    def log_agent(self, directory: Path, *, image_size: int, actions: int) -> None:
        """Record an exported agent as a model of this run, registered as ccwm-<task>-<variant>."""
        self._spool.append(
            "agent",
            file=self._spool.keep_file(directory),
            name=model_name(self.cell.task, self.cell.variant),
            image_size=image_size,
            actions=actions,
            digest=digest(directory),
        )

    def _begin(self, settings: dict[str, JsonValue], tags: Mapping[str, str]) -> None:
        """Say that the run goes on, with which settings and which code."""
        commit, dirty = git_state()
        self._spool.append("status", value="RUNNING")
        self._spool.append(
            "tags",
            values={
                **self.cell.tags,
                **tags,
                "git_commit": commit,
                "git_dirty": dirty,
                "mlflow.source.git.commit": commit,
            },
        )
        self._spool.append("params", values=dict(flat_params(settings)))
        with tempfile.TemporaryDirectory() as staging:
            path = Path(staging) / "settings.json"
            path.write_text(json.dumps(settings, indent=2) + "\n")
            self.log_artifact(path)


@contextmanager
def stage_run(
    cell: Cell,
    *,
    settings: dict[str, JsonValue],
    settings_hash: str,
    experiment: str,
    timeout: float,
    spool: Path,
    parent_run_id: str | None = None,
    run_id: str | None = None,
    title: str = "",
    tags: Mapping[str, str] = {},
) -> Iterator[Run]:
    """A run for the length of the block; ``run_id`` goes on with an earlier one, ``parent_run_id`` nests it.

    It ends FINISHED, KILLED (Ctrl-C, SystemExit 130 or 143) or FAILED. A store that is away costs at most ``timeout``
    seconds at the start and at the end; what it has not got stays in ``spool``.
    """
    opened = _open_spool(spool, run_id, timeout, experiment=experiment, name=title or cell.title, parent=parent_run_id)
    run = Run(cell, opened)
    run._begin(settings, {"settings_hash": settings_hash, **tags})
    outbox = Outbox(opened)
    outbox.start(timeout)
    if outbox.trouble:
        _say(f"tracking store away ({outbox.trouble}); the run goes on and is kept in {opened.directory}")
    status = "FINISHED"
    try:
        yield run
    except BaseException as error:
        status = _status_after(error)
        raise
    finally:
        opened.append("status", value=status)
        if not outbox.close(timeout, remove=status == "FINISHED"):
            _say(
                f"tracking store away ({outbox.trouble or 'too slow'}); {opened.unsent} bytes of run {run.run_id} "
                f"kept in {opened.directory}: send them with `ccwm tracking sync`"
            )
        if opened.rejected:
            _say(f"the tracking store refused some records of run {run.run_id}: {opened.directory / 'rejected.jsonl'}")


def flat_params(settings: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted keys and text: {"model": {"depth": 32}} → ("model.depth", "32")."""
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from flat_params(value, f"{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            yield name[:MAX_ENTITY_KEY_LENGTH], text[:MAX_PARAM_VAL_LENGTH]


def _open_spool(root: Path, run_id: str | None, wait: float, **identity: JsonValue) -> Spool:
    """The spool of the run to go on with, or a new one; the first id that a caller knows a run by stays valid."""
    known = find_spool(root, run_id) if run_id else None
    return Spool(known, wait=wait) if known else Spool.create(root, run_id, **identity)


def _status_after(error: BaseException) -> str:
    if isinstance(error, SystemExit) and error.code == 0:
        return "FINISHED"
    # Lightning's SIGTERMException is a SystemExit without a code.
    stopped = isinstance(error, SystemExit) and error.code in (None, 130, 143)
    return "KILLED" if stopped or isinstance(error, KeyboardInterrupt) else "FAILED"


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
