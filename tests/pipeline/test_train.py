"""Training that is killed or asked to end, and goes on: at the end nothing tells it from an uninterrupted run."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from training_project import CYCLES, ENTRY, KEY, TASK, UPDATES, Project, learning_of, write_params

from ccwm.training.checkpoints import Checkpoints
from ccwm.training.loop import train
from ccwm.training.progress import LiveProgress
from ccwm.training.signals import Interrupted
from ccwm.training.work_directory import exclusive


def assert_went_on_to_the_same_end(project: Project, finished: Project) -> None:
    stage = project.run("train", *ENTRY)
    assert stage.end() == 0, stage.said
    results = project.files("models", "results/train")
    assert {Path(name).name for name in results} == {
        "agent.safetensors", "agent.json", "metrics.json", "curve.csv", "losses.csv", "episodes.csv",
    }  # fmt: skip
    assert results == finished.files("models", "results/train")
    (run,) = project.mlflow_runs("train")
    assert run.info.status == "FINISHED"
    assert run.info.run_id == json.loads((project.trained / "run.json").read_text())["run_id"]
    assert not project.checkpoints()  # the work directory has served


def test_kill_9_at_any_moment_changes_nothing(project: Project, finished: Project) -> None:
    work = project.root / ".work" / "train" / KEY
    whole = finished.files("models", "results/train")
    moments = {
        "before the first checkpoint": lambda: project.updates_logged() >= 3,
        "after the first checkpoint": project.checkpoints,
        "after an episode": lambda: list(work.glob("*/replay/000002.safetensors")),
        "in the middle of a cycle": lambda: project.updates_logged() >= UPDATES + 5,
        "while a checkpoint is written": lambda: list(work.glob("*/checkpoints/*000002*")),
        "while results are published": lambda: list(project.model.parent.glob("*0*")),
    }
    for name, happened in moments.items():
        stage = project.start("train", *ENTRY)
        stage.wait_until(happened)
        assert stage.signal(signal.SIGKILL) == -signal.SIGKILL, name
        assert project.files("models", "results/train").items() <= whole.items(), name
    assert_went_on_to_the_same_end(project, finished)


def test_sigterm_and_ctrl_c_leave_a_checkpoint_and_a_hint(project: Project, finished: Project) -> None:
    for moment, signum, code in ((UPDATES + 2, signal.SIGTERM, 143), (2 * UPDATES + 5, signal.SIGINT, 130)):
        stage = project.start("train", *ENTRY)
        stage.wait_until(partial(lambda reached: project.updates_logged() >= reached, moment))
        assert stage.signal(signum) == code
        assert f"the work is kept in {project.work.relative_to(project.root)}: run the same command again" in stage.said
        assert "Traceback" not in stage.said
        saved = Checkpoints(project.work / "checkpoints").latest()
        assert saved is not None
        updates = saved["module"]["counters"]["updates"]
        assert updates >= moment
        assert updates % UPDATES, "the signal should have come in the middle of a cycle"
        assert [run.info.status for run in project.mlflow_runs("train")] == ["KILLED"]
        assert not project.files("models", "results/train")
    assert_went_on_to_the_same_end(project, finished)


def test_a_second_trainer_refuses_and_leaves_the_first_alone(project: Project, finished: Project) -> None:
    first = project.start("train", *ENTRY)
    first.wait_until(project.checkpoints)
    os.kill(first.pid, signal.SIGSTOP)  # it holds the directory for as long as the second needs
    try:
        second = project.run("train", *ENTRY)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert second.end() == 2
    assert second.said.startswith("error: ")
    assert f"in use by process {first.pid}" in second.said
    assert first.end() == 0, first.said
    assert project.files("models", "results/train") == finished.files("models", "results/train")
    (run,) = project.mlflow_runs("train")
    assert run.info.status == "FINISHED"


def test_a_full_disk_ends_training_and_with_room_again_it_goes_on(project: Project, finished: Project) -> None:
    """No file may grow beyond an episode's size, which a checkpoint's is above: the first one cannot be written."""
    episode = max(path.stat().st_size for path in (project.root / "data").rglob("*.safetensors"))
    write_params(project.root / "params.yaml", {"tracking": {"timeout": 1.0}})  # its database does not fit either
    stage = project.run("train", *ENTRY, FILE_LIMIT=str(episode + 1000))
    assert stage.end() not in (0, 2)
    assert "File too large" in stage.said
    assert not list(project.work.rglob("*.tmp"))
    assert not project.files("models", "results/train")
    assert_went_on_to_the_same_end(project, finished)


def test_a_signal_that_lightning_sees_first_is_not_an_end_with_code_0(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last callback of an update runs after our check, and Lightning's own check follows it."""
    monkeypatch.setattr(LiveProgress, "on_train_batch_end", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    work = project.root / "work"
    with exclusive(work), pytest.raises(Interrupted) as caught:
        train(
            learning_of(project.root / "params.yaml"),
            task=TASK,
            seed=0,
            data=project.root / "data" / TASK / "0" / "train",
            work=work,
            log=lambda metrics, env_steps: None,
            label="",
        )
    assert caught.value.code == 143
    saved = Checkpoints(work / "checkpoints").latest()
    assert saved is not None
    assert saved["module"]["counters"]["updates"] == 1


def test_the_uninterrupted_run_is_a_whole_one(finished: Project) -> None:
    """What the others are compared with: every cycle of it, and no weight that is not a number."""
    metrics = json.loads((finished.trained / "metrics.json").read_text())
    assert metrics["updates"] == CYCLES * UPDATES
    assert all(torch.isfinite(weight).all() for weight in load_file(finished.model / "agent.safetensors").values())
