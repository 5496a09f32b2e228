from __future__ import annotations

from pathlib import Path

import pytest
from project import DVC, STAGES, Project, make_project


@pytest.fixture(scope="session")
def studied(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A repository in which every stage has run once and is committed to DVC and to git; read only."""
    project = make_project(tmp_path_factory.mktemp("studied") / "project", store=empty_store)
    project.init_dvc()
    for call in STAGES.values():
        project.run(*call)
    project.command(*DVC, "commit", "--force", "--quiet")
    project.commit("Results")
    return project
