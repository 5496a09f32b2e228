from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from training_project import ENTRY, ROOT, TASK, Project, write_params

from ccwm.tracking import ensure_store


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with its random episodes and an empty MLflow store; read only."""
    root = tmp_path_factory.mktemp("collected") / "project"
    shutil.copytree(ROOT / "pipeline", root / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "claims.yaml", root)
    (root / "dvc.yaml").touch()
    write_params(root / "params.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root}/mlflow.db")
        ensure_store()
    empty = (root / "mlflow.db").read_bytes()
    project = Project(root)
    stage = project.run("collect", "--task", TASK, "--seed", "0")
    assert stage.end() == 0, stage.said
    (root / "mlflow.db").write_bytes(empty)  # its experiment keeps artifacts under this very path
    return project


@pytest.fixture(scope="session")
def finished(collected: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose agent was trained without interruption; read only."""
    project = collected.copy(tmp_path_factory.mktemp("finished") / "project")
    stage = project.run("train", *ENTRY)
    assert stage.end() == 0, stage.said
    return project


@pytest.fixture
def project(collected: Project, tmp_path: Path) -> Project:
    """A copy of the collected project that a test may change."""
    return collected.copy(tmp_path / "project")
