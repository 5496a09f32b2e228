"""One real run of the whole pipeline, shared by all tests that look at what it left."""

from __future__ import annotations

import pytest
from project import Project, make_project


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose every stage has run."""
    project = make_project(tmp_path_factory.mktemp("pipeline") / "project")
    project.run("dvc", "repro")
    project.commit("Results")
    return project
