"""A cell on a host, in its slot; Ray is this process, all else is real."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet_project import TASK, FleetProject
from inline_ray import InlineRay
from project import DVC

from ccwm.cells import Cell
from ccwm.fleet import scheduler, worker
from ccwm.fleet.code import capture
from ccwm.fleet.home import Home, held
from ccwm.fleet.progress import Progress
from ccwm.settings.loading import load_settings
from ccwm.training.signals import StopRequest

COLLECT = Cell("collect", TASK, seed=0)


def run(project: FleetProject, monkeypatch: pytest.MonkeyPatch) -> dict[Cell, str]:
    """Run the collect cell; returns why it failed, if it did."""
    ray = InlineRay()
    for module in (scheduler, worker):
        monkeypatch.setattr(module, "ray", ray)
    settings = load_settings(project.params)
    with held(project.root):
        home = Home(project.root, settings.study)
        fleet = scheduler.Scheduler(
            home,
            capture(project.root),
            settings,
            [COLLECT],
            share=(1.0, 0.0),
            uri=f"sqlite:///{project.root}/mlflow.db",
        )
        with Progress(project.root, [COLLECT], {}) as progress:
            fleet.run(progress, StopRequest())
    return fleet.failed


def test_a_host_without_homes_files_sends_its_objects_through_the_remote(
    project: FleetProject, sequential: FleetProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(worker.OWN_BASE, str(tmp_path / "other"))
    assert "DVC remote" in run(project, monkeypatch)[COLLECT]
    assert not (tmp_path / "other").exists()

    project.command(*DVC, "remote", "add", "--default", "store", str(tmp_path / "store"))
    assert run(project, monkeypatch) == {}
    assert project.lock() == {str(COLLECT): sequential.lock()[str(COLLECT)]}
    assert str(COLLECT) not in project.stale()
    assert project.files(str(COLLECT.data)) == sequential.files(str(COLLECT.data)) != {}
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not (project.root / ".work" / "fleet" / "slots").exists()
