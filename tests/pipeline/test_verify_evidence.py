"""`ccwm verify --evidence`: a cell of a kept study, run again at its commit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_helpers import COMMAND
from project import TASK, VARIANT, Project

from ccwm.cells import Cell

EVALUATE = Cell("evaluate", TASK, VARIANT, 0)
CELL = str(EVALUATE)
METRICS = EVALUATE.results / "metrics.json"


@pytest.fixture(scope="module")
def project(studied: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that keeps its own results as a study, and whose sources have changed since."""
    project = studied.copy(tmp_path_factory.mktemp("evidence") / "project")
    kept = project.root / "evidence" / "small"
    shutil.copytree(project.root / "results", kept / "results", dirs_exist_ok=True)
    for name in ("dvc.lock", "params.yaml"):
        shutil.copy(project.root / name, kept / name)
    for script in (project.root / "pipeline").glob("*.py"):
        script.write_text("raise SystemExit('not the commit of the cell')\n")
    project.commit("Other sources")
    return project


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_cell_and_what_it_needs_run_again_at_their_commit(project: Project) -> None:
    path = project.root / "evidence" / "small" / METRICS
    metrics = json.loads(path.read_text())
    path.write_text(json.dumps({**metrics, "return_mean": metrics["return_mean"] + 0.5}, indent=2) + "\n")
    said = project.command(*COMMAND, "verify", "--evidence", "small", "--cell", CELL, code=1, COLUMNS="200")
    rows = [line for line in said.splitlines() if "@" in line]
    assert {line.split()[0] for line in rows} == {f"collect@{TASK}-0", f"train@{TASK}-{VARIANT}-0", CELL}
    (wrong,) = [line for line in rows if " differs " in line]
    assert str(METRICS) in wrong
    assert "return_mean" in wrong
    assert all(" equal" in line for line in rows if line != wrong)


def test_what_cannot_be_run_again_is_refused(project: Project) -> None:
    def refused(*arguments: str) -> str:
        return project.command(*COMMAND, "verify", *arguments, code=2)

    assert "Did you mean 'small'" in refused("--evidence", "smal", "--cell", CELL)
    assert "--cell" in refused("--evidence", "small")
    assert "belong together" in refused("--cell", CELL)
    assert f"Did you mean '{CELL}'" in refused("--evidence", "small", "--cell", CELL.replace("ccwm", "ccwn"))
    with project.restored(str(Path("evidence/small") / EVALUATE.record)) as record:
        record.write_text(json.dumps({**json.loads(record.read_text()), "dirty": "true"}))
        assert CELL in refused("--evidence", "small", "--cell", CELL)
