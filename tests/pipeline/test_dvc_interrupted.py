"""DVC around a training stage that is asked to end: nothing is committed, and the next `dvc repro` goes on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from training_project import ROOT, TASK, VARIANT, Project

STAGE = f"train@{TASK}-{VARIANT}-0"


def dvc(project: Project, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "DVC_NO_ANALYTICS": "1"}
    environment.pop("MLFLOW_TRACKING_URI", None)
    return subprocess.Popen(
        [sys.executable, "-m", "dvc", *arguments],
        cwd=project.root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_stage_that_sigterm_ended_is_not_committed_and_goes_on(project: Project, finished: Project) -> None:
    shutil.copytree(ROOT / "src", project.root / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, project.root / name)
    assert dvc(project, "init", "--no-scm", "--quiet").wait() == 0

    first = dvc(project, "repro", "--single-item", STAGE)
    while not project.checkpoints():
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.01)
    trainer = int((project.work / "holder").read_text().removeprefix("process "))
    os.kill(trainer, signal.SIGTERM)
    told, _ = first.communicate()
    assert first.returncode != 0, told
    assert not (project.root / "dvc.lock").exists()
    assert project.checkpoints()

    second = dvc(project, "repro", "--single-item", STAGE)
    told, _ = second.communicate()
    assert second.returncode == 0, told
    assert STAGE in (project.root / "dvc.lock").read_text()
    assert project.files("models", "results/train") == finished.files("models", "results/train")
    (run,) = project.mlflow_runs("train")
    assert run.info.status == "FINISHED"
