from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from project import STAGES, Project, make_project


@pytest.fixture(scope="session")
def studied(empty_store: Path, shared_folder: Callable[..., Path]) -> Project:
    """A repository in which every stage has run once and is committed to DVC and to git; read only."""

    def fill(folder: Path) -> None:
        project = make_project(folder / "project", store=empty_store)
        project.init_dvc()
        for call in STAGES.values():
            project.run(*call)
        with project.dvc() as repo:
            repo.commit(force=True)
        project.commit("Results")

    return Project(shared_folder("studied", fill) / "project")


@pytest.fixture(scope="module")
def edited(studied: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy in which the tests of a file run DVC and change settings and sources, and change them back."""
    return studied.copy(tmp_path_factory.mktemp("edited") / "project")
