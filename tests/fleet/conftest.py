from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fleet_project import FleetProject, make_fleet_project
from ray_cluster import Cluster

Shared = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def planned(empty_store: Path, shared_folder: Shared) -> FleetProject:
    """A project in which nothing has run; read only."""
    made = shared_folder("planned", lambda folder: make_fleet_project(folder / "project", store=empty_store))
    return FleetProject(made / "project")


@pytest.fixture(scope="session")
def sequential(planned: FleetProject, shared_folder: Shared) -> FleetProject:
    """The same, after `dvc repro` of every cell but the report; read only."""
    made = shared_folder("sequential", lambda folder: planned.copy(folder / "project").repro())
    return FleetProject(made / "project")


@pytest.fixture
def project(planned: FleetProject, tmp_path: Path) -> FleetProject:
    """A copy of the planned project that a test may change."""
    return planned.copy(tmp_path / "project")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    found = Cluster()
    try:
        yield found
    finally:
        found.stop()
