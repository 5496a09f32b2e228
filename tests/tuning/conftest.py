from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tuning_project import Project, make_project

from ccwm.tracking import ensure_store


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A created MLflow store without runs: its migrations take seconds, so they run once."""
    database = tmp_path_factory.mktemp("tune-store") / "mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
        ensure_store()
    return database


@pytest.fixture
def project(tmp_path: Path, empty_store: Path) -> Project:
    """A tiny project to search in."""
    made = make_project(tmp_path / "project")
    shutil.copyfile(empty_store, made.root / "mlflow.db")
    return made
