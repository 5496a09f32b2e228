"""The training stage, killed or asked to end: resumed, nothing tells it from an uninterrupted run."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from project import ARGUMENTS, CYCLES, TRAIN, UPDATES, Project
from safetensors.torch import load_file

from ccwm.training.checkpoints import Checkpoints

PUBLISHED = {"agent.safetensors", "agent.json", "metrics.json", "curve.csv", "losses.csv", "episodes.csv"}


def outputs(project: Project) -> dict[str, bytes]:
    return project.files("models", "results/train")


def assert_resumes_to_the_same_end(project: Project, finished: Project) -> None:
    project.run("train", *ARGUMENTS)
    assert outputs(project) == outputs(finished)
    (run,) = project.mlflow_runs("train")
    assert run.info.status == "FINISHED"
    assert run.info.run_id == json.loads((project.root / TRAIN.record).read_text())["run_id"]
    assert not project.checkpoints()  # the work directory has served


def test_the_uninterrupted_run_is_a_whole_one(finished: Project) -> None:
    """What the others are compared with: every cycle of it, and no weight that is not a number."""
    assert {Path(name).name for name in outputs(finished)} == PUBLISHED
    metrics = json.loads((finished.trained / "metrics.json").read_text())
    assert metrics["updates"] == CYCLES * UPDATES
    assert all(torch.isfinite(weight).all() for weight in load_file(finished.model / "agent.safetensors").values())


def moments(project: Project) -> dict[str, Callable[[], object]]:
    """What a kill may come after, in the order of its happening."""
    work = project.root / ".work" / "train" / TRAIN.key
    return {
        "before the first checkpoint": lambda: project.updates_logged() >= 4,
        "after the first checkpoint": project.checkpoints,
        "after an episode": lambda: list(work.glob("*/replay/000002.safetensors")),
        "in the middle of a cycle": lambda: project.updates_logged() >= UPDATES + 2,
        "while a checkpoint is written": lambda: list(work.glob("*/checkpoints/*000002*")),
        "while results are published": lambda: list(project.model.parent.glob("*0*")),
    }


def kill_at(project: Project, finished: Project, names: list[str]) -> None:
    whole = outputs(finished)
    for name in names:
        process = project.start("train", *ARGUMENTS)
        process.wait_until(moments(project)[name])
        assert process.signal(signal.SIGKILL) == -signal.SIGKILL, name
        assert outputs(project).items() <= whole.items(), name
    assert_resumes_to_the_same_end(project, finished)


def test_kill_9_changes_nothing(project: Project, finished: Project) -> None:
    kill_at(project, finished, ["in the middle of a cycle", "while results are published"])


@pytest.mark.slow
def test_kill_9_at_any_moment_changes_nothing(project: Project, finished: Project) -> None:
    kill_at(project, finished, [*moments(project)])


def test_sigterm_and_ctrl_c_leave_a_checkpoint_and_a_hint(project: Project, finished: Project) -> None:
    for moment, signum, code in ((UPDATES + 2, signal.SIGTERM, 143), (2 * UPDATES + 4, signal.SIGINT, 130)):
        process = project.start("train", *ARGUMENTS)
        process.wait_until(partial(lambda reached: project.updates_logged() >= reached, moment))
        assert process.signal(signum) == code
        assert str(project.work.relative_to(project.root)) in process.said  # where the work is kept
        assert "Traceback" not in process.said
        saved = Checkpoints(project.work / "checkpoints").latest()
        assert saved is not None
        assert saved["updater"]["module"]["_extra_state"]["updates"] >= moment
        assert [run.info.status for run in project.mlflow_runs("train")] == ["KILLED"]
        assert not outputs(project)
    assert_resumes_to_the_same_end(project, finished)


def test_a_second_trainer_refuses_and_leaves_the_first_alone(project: Project) -> None:
    first = project.start("train", *ARGUMENTS)
    first.wait_until(project.checkpoints)
    os.kill(first.pid, signal.SIGSTOP)  # it holds the directory for as long as the second needs
    before = project.files(".work")
    second = project.start("train", *ARGUMENTS, name="second")
    assert second.end() == 2
    assert f"process {first.pid}" in second.said
    assert "Traceback" not in second.said
    assert project.files(".work") == before
    assert not outputs(project)
    first.signal(signal.SIGKILL)


def test_a_full_disk_ends_training_and_with_room_again_it_resumes(project: Project, finished: Project) -> None:
    """No file may grow beyond an episode's size, which a checkpoint's is above: the first one cannot be written."""
    episode = max(path.stat().st_size for path in (project.root / "data").rglob("*.safetensors"))
    project.set_params({"tracking": {"timeout": 1.0}})  # its database does not fit either
    process = project.start("train", *ARGUMENTS, FILE_LIMIT=str(episode + 1000))
    assert process.end() not in (0, 2)
    assert "File too large" in process.said
    assert not list(project.work.rglob("*.tmp"))
    assert not outputs(project)
    assert_resumes_to_the_same_end(project, finished)


@pytest.mark.slow
def test_a_damaged_checkpoint_gives_way_to_the_one_before(project: Project, finished: Project) -> None:
    process = project.start("train", *ARGUMENTS)
    process.wait_until(lambda: len([path for path in project.checkpoints() if path.stem.isdigit()]) >= 2)
    process.signal(signal.SIGKILL)
    newest = max(path for path in project.checkpoints() if path.stem.isdigit())
    newest.write_bytes(newest.read_bytes()[:-100])
    assert newest.name in project.run("train", *ARGUMENTS)
    assert outputs(project) == outputs(finished)


def test_nan_ends_the_stage_by_name_and_leaves_another_run_s_work_alone(project: Project) -> None:
    """Other settings than those of an earlier, unfinished run, too: that one's directory is not touched."""
    earlier = project.root / ".work" / "train" / TRAIN.key / "0123456789ab" / "checkpoints" / "000000.pt"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("of other settings")
    project.set_params({"model": {"observation_scale": 1e38}})
    said = project.run("train", *ARGUMENTS, code=2)
    assert "error: update 0: model/observation" in said
    assert "Traceback" not in said
    assert [run.info.status for run in project.mlflow_runs("train")] == ["FAILED"]
    assert not outputs(project)
    assert earlier.read_text() == "of other settings"
