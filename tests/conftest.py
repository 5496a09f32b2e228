"""Fixtures of all tests: an empty MLflow store, and tiny projects, each made once; whoever changes one copies it."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import STAGES, Project, make_project


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of an MLflow store without runs: its migrations take seconds, so they run once."""
    from ccwm.tracking.store import ensure_store

    database = tmp_path_factory.mktemp("store") / "mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
        ensure_store()
    return database


@pytest.fixture(scope="session")
def collected(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with its random episodes and an empty MLflow store; read only."""
    project = make_project(tmp_path_factory.mktemp("collected") / "project", store=empty_store)
    project.run(*STAGES["collect"])
    (project.root / "mlflow.db").write_bytes(empty_store.read_bytes())  # its experiment keeps artifacts in this place
    return project


@pytest.fixture(scope="session")
def finished(collected: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose agent was trained without interruption; read only."""
    project = collected.copy(tmp_path_factory.mktemp("finished") / "project")
    project.run(*STAGES["train"])
    return project


@pytest.fixture
def project(collected: Project, tmp_path: Path) -> Project:
    """A copy of the collected project that a test may change."""
    return collected.copy(tmp_path / "project")
