"""Cells that another study has finished: taken over where nothing that they read differs, and only then."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fleet_project import TASK, FleetProject

from ccwm.fleet.home import read_lock
from ccwm.fleet.run import Request, run_fleet

FIRST, SECOND = Path("evidence/first"), Path("evidence/second")
NOTHING = "train@no-such-cell"


@pytest.fixture
def finished(sequential: FleetProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetProject:
    """A project with one finished study, and the settings of a second one that is equal."""
    project = sequential.copy(tmp_path / "project")
    monkeypatch.chdir(project.root)
    for kept in (FIRST, SECOND):
        kept.mkdir(parents=True)
        shutil.copy("params.yaml", kept)
    shutil.copytree("results", FIRST / "results")
    shutil.copy("dvc.lock", FIRST)
    return project


def adopted(project: FleetProject, **change: Any) -> set[str]:
    """Which cells the second study takes over when its settings are changed so, and no cell runs."""
    FleetProject(project.root / SECOND).set_params(change)
    found = run_fleet(project.root, Request(SECOND, pattern=NOTHING)).adopted
    entries = read_lock(project.root / SECOND / "dvc.lock")
    assert found == ({"first": len(entries)} if entries else {})
    first = read_lock(project.root / FIRST / "dvc.lock")
    assert entries == {name: first[name] for name in entries}
    names = {path.parent.relative_to(SECOND / "results") for path in SECOND.rglob("run.json")}
    assert len(names) == len(entries)  # records and results of these, and of no other
    for folder in names:
        for path in filter(Path.is_file, (FIRST / "results" / folder).iterdir()):
            assert (SECOND / "results" / folder / path.name).read_bytes() == path.read_bytes()
    return set(entries)


def change_code(project: FleetProject, stage: str) -> None:
    script = project.root / "pipeline" / f"{stage}.py"
    script.write_text(script.read_text() + "\n# another\n")
    project.commit("Other code")


def test_an_equal_study_has_nothing_to_run(finished: FleetProject) -> None:
    assert adopted(finished) == set(read_lock(FIRST / "dvc.lock"))
    assert run_fleet(finished.root, Request(SECOND)).todo == []


def test_behind_a_cell_that_must_run_nothing_is_taken_over(finished: FleetProject) -> None:
    change_code(finished, "train")
    assert adopted(finished) == {f"collect@{TASK}-0"}


def test_other_settings_other_code_and_a_damaged_file_leave_just_the_cells_that_read_them(
    finished: FleetProject,
) -> None:
    change_code(finished, "evaluate")
    damaged = f"rollout-viz/{TASK}/ccwm/0"
    (FIRST / "results" / damaged / "metrics.json").write_text("wrong")
    left = ("transfer@", "evaluate@", f"rollout-viz@{TASK}-ccwm-0")
    every = set(read_lock(FIRST / "dvc.lock"))
    assert adopted(finished, transfer={"draws": 3}) == {name for name in every if not name.startswith(left)}
