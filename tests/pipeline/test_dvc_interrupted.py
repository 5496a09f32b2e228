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


@pytest.fixture
def with_dvc(project: Project) -> Project:
    (project.root / ".dvc").mkdir()
    (project.root / ".dvc" / "config").write_text("[core]\n    no_scm = True\n")  # what `dvc init --no-scm` writes
    return project


# What training leaves when SIGTERM ends it is shown by test_train.py; here it is DVC's turn.
HALF_DONE = """
import os, signal, sys
from pathlib import Path

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
Path("{model}").mkdir(parents=True)
Path("{model}/agent.safetensors").write_text("half of it")
Path("{model}/holder").write_text(str(os.getpid()))
signal.pause()
"""


def test_what_a_stage_that_sigterm_ended_has_left_is_not_committed(with_dvc: Project) -> None:
    project = with_dvc
    (project.root / "pipeline" / "train.py").write_text(HALF_DONE.format(model=TRAIN.model))
    running = start(project)
    holder = project.model / "holder"
    running.wait_until(lambda: holder.exists() and holder.read_text())
    os.kill(int(holder.read_text()), signal.SIGTERM)
    assert running.end() != 0, running.said
    assert "exited with 143" in running.said
    assert not (project.root / "dvc.lock").exists()


@pytest.mark.slow
def test_a_training_that_sigterm_ended_is_not_committed_and_resumes(with_dvc: Project, finished: Project) -> None:
    project = with_dvc
    first = start(project)
    first.wait_until(project.checkpoints)
    trainer = int((project.work / "holder").read_text().removeprefix("process "))
    os.kill(trainer, signal.SIGTERM)
    assert first.end() != 0, first.said
    assert "exited with 143" in first.said
    assert not (project.root / "dvc.lock").exists()
    assert project.checkpoints()
    again = start(project)
    assert again.end() == 0, again.said
    assert str(TRAIN) in (project.root / "dvc.lock").read_text()
    assert project.files("models", "results/train") == finished.files("models", "results/train")
    assert [run.info.status for run in project.mlflow_runs("train")] == ["FINISHED"]
