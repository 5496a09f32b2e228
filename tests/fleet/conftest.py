from __future__ import annotations

from pathlib import Path

import pytest
from fleet_project import FleetProject, make_fleet_project


@pytest.fixture(scope="session")
def planned(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> FleetProject:
    """A project in which nothing has run; read only."""
    return make_fleet_project(tmp_path_factory.mktemp("planned") / "project", store=empty_store)


@pytest.fixture(scope="session")
def sequential(planned: FleetProject, tmp_path_factory: pytest.TempPathFactory) -> FleetProject:
    """The same, after `dvc repro` of every cell but the report; read only."""
    project = planned.copy(tmp_path_factory.mktemp("sequential") / "project")
    project.repro()
    return project


@pytest.fixture
def project(planned: FleetProject, tmp_path: Path) -> FleetProject:
    """A copy of the planned project that a test may change."""
    return planned.copy(tmp_path / "project")
