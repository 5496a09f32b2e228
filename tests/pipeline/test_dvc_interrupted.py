"""DVC around a training stage that is asked to end: nothing is committed, and the next `dvc repro` resumes."""

from __future__ import annotations

import os
import signal
import time

from project import DVC, TRAIN, Project


def test_a_stage_that_sigterm_ended_is_not_committed_and_resumes(project: Project, finished: Project) -> None:
    (project.root / ".dvc").mkdir()
    (project.root / ".dvc" / "config").write_text("[core]\n    no_scm = True\n")  # what `dvc init --no-scm` writes
    repro = (*DVC, "repro", "--single-item", str(TRAIN))

    first = project.open(*repro)
    while not project.checkpoints():
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.01)
    trainer = int((project.work / "holder").read_text().removeprefix("process "))
    os.kill(trainer, signal.SIGTERM)
    said, _ = first.communicate()
    assert first.returncode != 0, said
    assert not (project.root / "dvc.lock").exists()
    assert project.checkpoints()

    project.command(*repro)
    assert str(TRAIN) in (project.root / "dvc.lock").read_text()
    assert project.files("models", "results/train") == finished.files("models", "results/train")
    assert [run.info.status for run in project.mlflow_runs("train")] == ["FINISHED"]
