"""Fixtures of all tests: an empty MLflow store, and tiny projects, each made once; whoever changes one copies it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from project import STAGES, Project, make_project

Shared = Callable[[str, Callable[[Path], object]], Path]
LONGEST = ("fleet", "pipeline", "tuning", "training", "tracking", "agents")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders with long tests come first, so that at the end no worker is alone with one of them."""
    order = {folder: place for place, folder in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.parent.name, len(order)))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """A folder by its name, filled by the first test process that asks for it and read by all of them."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all workers

    def share(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = base / name, base / f"{name}.done"
        with FileLock(base / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a process that failed
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return share


@pytest.fixture(scope="session")
def empty_store(shared_folder: Shared) -> Path:
    """The database of an MLflow store without runs: its migrations take seconds, so they run once."""
    from ccwm.tracking.store import connect

    def fill(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")
            connect()

    return shared_folder("store", fill) / "mlflow.db"


@pytest.fixture(scope="session")
def collected(empty_store: Path, shared_folder: Shared) -> Project:
    """A project with its random episodes and an empty MLflow store; read only."""

    def fill(folder: Path) -> None:
        project = make_project(folder / "project", store=empty_store)
        project.run(*STAGES["collect"])
        # The experiment that the stage has made keeps its artifacts in this folder, not in a copy's.
        (project.root / "mlflow.db").write_bytes(empty_store.read_bytes())

    return Project(shared_folder("collected", fill) / "project")


@pytest.fixture(scope="session")
def finished(collected: Project, shared_folder: Shared) -> Project:
    """A project whose agent was trained without interruption; read only."""

    def fill(folder: Path) -> None:
        collected.copy(folder / "project").run(*STAGES["train"])

    return Project(shared_folder("finished", fill) / "project")


@pytest.fixture
def project(collected: Project, tmp_path: Path) -> Project:
    """A copy of the collected project that a test may change."""
    return collected.copy(tmp_path / "project")
