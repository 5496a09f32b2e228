"""DVC around a training stage that is asked to end: nothing is committed, and the next `dvc repro` resumes."""

from __future__ import annotations

import os
import signal

import pytest
from project import TRAIN, Process, Project

pytestmark = pytest.mark.timeout(1200)


def reproduce(target: str) -> None:
    """In a process: be `dvc repro --single-item <target>`."""
    from dvc.repo import Repo

    with Repo() as repo:
        repo.reproduce(target, single_item=True)


def start(project: Project) -> Process:
    log = project.root / "repro.log"
    return Process(reproduce, (str(TRAIN),), root=project.root, log=log, environment=project.environment())


@pytest.mark.parametrize("resumed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_stage_that_sigterm_ended_is_not_committed_and_resumes(
    resumed: bool, project: Project, request: pytest.FixtureRequest
) -> None:
    (project.root / ".dvc").mkdir()
    (project.root / ".dvc" / "config").write_text("[core]\n    no_scm = True\n")  # what `dvc init --no-scm` writes

    first = start(project)
    first.wait_until(project.checkpoints)
    trainer = int((project.work / "holder").read_text().removeprefix("process "))
    os.kill(trainer, signal.SIGTERM)
    assert first.end() != 0, first.said
    assert "exited with 143" in first.said
    assert not (project.root / "dvc.lock").exists()
    assert project.checkpoints()
    if resumed:
        again = start(project)
        assert again.end() == 0, again.said
        assert str(TRAIN) in (project.root / "dvc.lock").read_text()
        finished: Project = request.getfixturevalue("finished")
        assert project.files("models", "results/train") == finished.files("models", "results/train")
        assert [run.info.status for run in project.mlflow_runs("train")] == ["FINISHED"]
