"""Where MLflow keeps runs: the address of the store, its first creation, and a client with bounded waits."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from ccwm.errors import UserError

SQLITE = "sqlite:///"

CLIENT_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    # The outbox tries again by itself; a retry inside MLflow could create a run twice without our seeing it.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""MLflow's own settings, read at each call; a value that the user has set wins."""

COLUMNS = {
    "attributes.`Run Name`": 310,
    "tags.`stage`": 100,
    "metrics.`evaluation/return_mean`": 190,
    "metrics.`return_mean`": 130,
    "metrics.`score`": 100,
    "attributes.`Models`": 220,
}
"""The columns of MLflow's table of runs, and their widths in pixels."""
VIEW = {
    "mlflow.experimentKind": "custom_model_development",
    "mlflow.sharedViewState.ccwm": json.dumps(
        {"selectedColumns": list(COLUMNS), "columnOrder": list(COLUMNS), "columnWidths": COLUMNS}
    ),
}
"""Tags of an experiment that MLflow's UI reads: it is about model training, and a view with the columns to show."""


def project_root(start: Path) -> Path:
    """The directory at or above ``start`` that holds dvc.yaml; within `dvc exp run --temp` that of the outer project.

    DVC deletes <project>/.dvc/tmp/exps/… after the experiment, so a store must not live there.
    """
    here = start.resolve()
    inside = [root for root in (here, *here.parents) if (root / "dvc.yaml").is_file() and ".dvc" not in root.parts]
    if not inside:
        raise UserError(f"no dvc.yaml in {here} or above", hint="run inside the project, or set MLFLOW_TRACKING_URI")
    return inside[0]


def tracking_uri() -> str:
    """The store's absolute address: MLFLOW_TRACKING_URI, else mlflow.db at the project's root."""
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}mlflow.db"
    if urlsplit(uri).scheme in ("", "file"):
        hint = "use sqlite:///PATH or http://HOST:PORT"
        raise UserError(f"MLFLOW_TRACKING_URI={uri} is a file store, which MLflow refuses", hint=hint)
    if uri.startswith(SQLITE) and not Path(uri.removeprefix(SQLITE)).is_absolute():
        return f"{SQLITE}{project_root(Path.cwd()) / uri.removeprefix(SQLITE)}"
    return uri


def sqlite_file() -> Path | None:
    """The store's database; None for a server."""
    uri = tracking_uri()
    return Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None


def connect() -> MlflowClient:
    """A client whose calls end within MLFLOW_HTTP_REQUEST_TIMEOUT seconds.

    A sqlite store is created once, however many processes start at the same time.
    """
    for key, value in CLIENT_ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    uri, database = tracking_uri(), sqlite_file()
    if database is None:
        return MlflowClient(uri, uri)
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)  # every migration of a new database is a line of INFO
    refuse_damaged()
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{database}.lock"):
        client = MlflowClient(uri, uri)
        client.search_experiments(max_results=1)
    return client


def refuse_damaged() -> None:
    """Refuse a store that is no SQLite database: MLflow would try to read it again and again, for most of an hour."""
    database = sqlite_file()
    if database is None or not database.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        return  # it is locked, or may not be read: the next call says so
    except sqlite3.DatabaseError as error:
        hint = f"restore it, or move it away: the next run makes a new {database.name}"
        raise UserError(f"the tracking store {database} is damaged ({error})", hint=hint) from None


def check_store(experiment: str) -> str:
    """Reach the store and be allowed to write to it; returns what was found, raises what is wrong."""
    database = sqlite_file()
    if database is None:
        view_path(experiment)
        return f"{tracking_uri()} answers and takes what is written"
    if not database.exists():
        if not os.access(database.parent, os.W_OK):
            raise UserError(f"{database.parent} is not writable, and the store belongs there")
        return f"no store yet; the first run makes {database.name}"
    # Asked directly: MLflow tries a database that it cannot read again and again, for most of an hour.
    with closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True, timeout=5, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        (known,) = connection.execute("SELECT count(*) FROM runs").fetchone()
        connection.execute("ROLLBACK")
    return f"{database.name} holds {known} runs and can be written to"


def experiment_id(client: MlflowClient, name: str) -> str:
    """The id of the experiment, which is made on first use; with sqlite its files go to mlartifacts beside it."""
    if client.get_experiment_by_name(name) is None:
        database = sqlite_file()
        files = database.with_name("mlartifacts").as_uri() if database else None
        with suppress_existing():  # another process may be faster
            client.create_experiment(name, artifact_location=files, tags=VIEW)
    found = client.get_experiment_by_name(name)
    if found is None or found.lifecycle_stage != "active":
        hint = "restore it, or name another in tracking.experiment"
        raise UserError(f"experiment {name} was deleted in MLflow", hint=hint)
    return str(found.experiment_id)


@contextmanager
def suppress_existing() -> Iterator[None]:
    """Within, what already exists need not be created."""
    try:
        yield
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def view_path(experiment: str) -> str:
    """The page of the experiment's runs in MLflow's UI, with our columns; older experiments learn of them here."""
    client = connect()
    known = experiment_id(client, experiment)
    for key, value in VIEW.items():
        client.set_experiment_tag(known, key, value)
    return f"/#/experiments/{known}/runs?workflowType=machine_learning&viewStateShareKey=ccwm"
