"""`ccwm fleet run`: the same as `dvc repro`, only in parallel."""

from __future__ import annotations

import json
import os
import platform
import shutil

import pytest
from fleet_project import TASK, FleetProject

from ccwm.cells import Cell

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.timeout(1800)]


def test_a_fleet_leaves_what_dvc_repro_leaves(project: FleetProject, sequential: FleetProject) -> None:
    project.fleet()
    assert project.stale() == set()
    project.assert_like(sequential)
    assert set(project.steps().values()) == {1}
    assert len(project.steps()) == len(project.lock()) == 9
    with project.dvc() as repo:
        assert [stage.addressing for stage in repo.reproduce(dry=True)] == ["report"]
    record = json.loads((project.root / Cell("train", TASK, "ccwm", 0).record).read_text())
    assert record == {"threads": "1", "nice": os.nice(0), "host": platform.node()}
    assert not list((project.root / ".work" / "fleet" / "arrived").iterdir())


def test_a_change_runs_what_it_touches_with_the_patch_recorded(project: FleetProject, sequential: FleetProject) -> None:
    for name in (".dvc/cache", "dvc.lock", "data", "models", "results"):
        source, target = sequential.root / name, project.root / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    project.set_params({"evaluate": {"episodes": 3}})
    project.fleet("--cells", "evaluate@*")
    assert {cell for cell, _ in project.steps()} == {f"evaluate@{TASK}-{variant}-0" for variant in ("dreamer", "ccwm")}
    assert project.stale() == set()
    record = json.loads((project.root / Cell("evaluate", TASK, "ccwm", 0).record).read_text())
    assert b"episodes: 3" in (project.root / ".work" / "patches" / record["patch"]).read_bytes()
    assert "no cell is stale" in project.fleet()


@pytest.mark.slow
def test_a_study_beside_the_project_is_kept_in_its_own_directory(project: FleetProject) -> None:
    kept = project.root / "evidence" / "small"
    kept.mkdir(parents=True)
    (kept / "params.yaml").write_text(project.params.read_text().replace("- dreamer\n", "").replace("[dreamer, ", "["))
    before = project.command("git", "status", "--short")
    said = project.fleet("--into", "evidence/small")
    assert "5 of 5 stale cells are done" in said
    assert (project.root / ".work/fleet/studies/evidence-small/report/content.txt").is_file()
    assert project.command("git", "status", "--short") == before
    results = {path.relative_to(kept).as_posix() for path in kept.rglob("*.*")}
    assert {"dvc.lock", f"results/train/{TASK}/ccwm/0/curve.csv", f"results/train/{TASK}/ccwm/0/run.json"} <= results
    assert not [name for name in results if name.endswith(".png")]

    shutil.rmtree(project.root / ".work" / "fleet")
    assert "no cell is stale" in project.fleet("--into", "evidence/small")
    assert len(project.steps()) == 6  # with the report

    for made in (".work/fleet", ".dvc/cache"):  # as in a fresh clone, which has the small results alone
        shutil.rmtree(project.root / made)
    assert "no cell is stale" in project.fleet("--into", "evidence/small")
    shutil.rmtree(project.root / ".work" / "fleet")
    (kept / f"results/evaluate/{TASK}/ccwm/0/metrics.json").unlink()
    said = project.fleet("--into", "evidence/small")
    assert "3 of 3 stale cells are done" in said  # it needs data and an agent, which are made again
