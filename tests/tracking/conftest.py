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
from ccwm.settings.schema import Tracking
from ccwm.tracking import Run, stage_run, tracking_uri


@pytest.fixture
def fresh_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project as the working directory, without a store."""
    (tmp_path / "dvc.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


@pytest.fixture
def project(fresh_project: Path, empty_store: Path) -> Path:
    """An empty project with a sqlite store."""
    shutil.copyfile(empty_store, fresh_project / "mlflow.db")
    return fresh_project


@pytest.fixture
def start_run() -> StartRun:
    """``stage_run`` with everything that a test does not care about."""

    def start(
        cell: Cell = CELL, *, experiment: str = "ccwm", timeout: float = 20.0, **changes: Any
    ) -> AbstractContextManager[Run]:
        given: dict[str, Any] = {"settings": {}, "tags": {"settings_hash": "abc123"}, "spool": Path("spool")}
        return stage_run(cell, Tracking(experiment=experiment, timeout=timeout), **(given | changes))

    return start


@pytest.fixture
def client() -> Callable[[], MlflowClient]:
    """A plain client of the current store."""
    return lambda: MlflowClient(tracking_uri(), tracking_uri())


@pytest.fixture(scope="session")
def server_process(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests, since its start takes seconds; each test starts and kills it as it needs."""
    directory = tmp_path_factory.mktemp("server")
    shutil.copyfile(empty_store, directory / "mlflow.db")
    process = Server(directory)
    yield process
    process.kill()


@pytest.fixture(params=["outage", pytest.param("server", marks=pytest.mark.slow)])
def server(
    request: pytest.FixtureRequest, fresh_project: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch
) -> Server | Outage:
    """The store of an empty project, which can be killed and started: a real server, or a sqlite store that refuses."""
    if request.param == "server":
        real: Server = request.getfixturevalue("real_server")
        return real
    shutil.copyfile(empty_store, fresh_project / "mlflow.db")
    outage = Outage()
    monkeypatch.setattr("ccwm.tracking.store.connect", outage.connect)
    return outage


@pytest.fixture
def real_server(server_process: Server, fresh_project: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A real server, running or not, as the store of an empty project."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server_process.uri)
    return server_process
