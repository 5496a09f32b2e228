from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from tracking_helpers import CELL, Outage, Server, StartRun

from ccwm.cells import Cell
from ccwm.tracking import Run, ensure_store, stage_run, tracking_uri


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A created store without runs: its migrations take seconds, so they run once for all tests."""
    database = tmp_path_factory.mktemp("store") / "mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
        ensure_store()
    return database


@pytest.fixture
def fresh_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project as the working directory, without a store."""
    (tmp_path / "dvc.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


@pytest.fixture
def project(fresh_project: Path, empty_database: Path) -> Path:
    """An empty project with a sqlite store."""
    shutil.copyfile(empty_database, fresh_project / "mlflow.db")
    return fresh_project


@pytest.fixture
def start_run() -> StartRun:
    """``stage_run`` with everything that a test does not care about."""

    def start(cell: Cell = CELL, **changes: Any) -> AbstractContextManager[Run]:
        given: dict[str, Any] = {"settings": {}, "settings_hash": "abc123", "experiment": "ccwm", "timeout": 20.0}
        return stage_run(cell, **(given | {"spool": Path("spool")} | changes))

    return start


@pytest.fixture
def client() -> Callable[[], MlflowClient]:
    """A plain client of the current store."""
    return lambda: MlflowClient(tracking_uri(), tracking_uri())


@pytest.fixture(scope="session")
def server_process(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests, since its start takes seconds; each test starts and kills it as it needs."""
    directory = tmp_path_factory.mktemp("server")
    shutil.copyfile(empty_database, directory / "mlflow.db")
    process = Server(directory)
    yield process
    process.kill()


@pytest.fixture(params=["outage", pytest.param("server", marks=pytest.mark.slow)])
def server(
    request: pytest.FixtureRequest, fresh_project: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> Server | Outage:
    """The store of an empty project, which can be killed and started: a real server, or a sqlite store that refuses."""
    if request.param == "server":
        real: Server = request.getfixturevalue("real_server")
        return real
    shutil.copyfile(empty_database, fresh_project / "mlflow.db")
    outage = Outage()
    monkeypatch.setattr("ccwm.tracking.store.connect", outage.connect)
    return outage


@pytest.fixture
def real_server(server_process: Server, fresh_project: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A real server, running or not, as the store of an empty project."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server_process.uri)
    return server_process
