"""Two processes that share every batch of a training stage: the same agent, and nobody is left behind or waited for."""

from __future__ import annotations

import csv
import os
import signal
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from training_project import ENTRY, UPDATES, Project, Stage, write_params

from ccwm.training.checkpoints import Checkpoints

TWO = {"trainer": {"devices": 2, "accelerator": "cpu", "strategy": "ddp"}}


@pytest.fixture(scope="module")
def shared(collected: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose agent was trained by two processes without interruption; read only."""
    project = collected.copy(tmp_path_factory.mktemp("shared") / "project")
    write_params(project.root / "params.yaml", TWO)
    stage = project.run("train", *ENTRY)
    assert stage.end() == 0, stage.said
    return project


def followers(stage: Stage) -> list[int]:
    """The processes that a stage has started; there must be one, or nothing is shared."""
    children = Path(f"/proc/{stage.pid}/task/{stage.pid}/children").read_text().split()
    found = [int(child) for child in children if b"follow()" in Path(f"/proc/{child}/cmdline").read_bytes()]
    assert len(found) == 1
    return found


def assert_gone(processes: list[int]) -> None:
    def alive(process: int) -> bool:
        stat = Path(f"/proc/{process}/stat")
        return stat.exists() and ") Z" not in stat.read_text()  # a zombie has ended; nobody has asked for its code

    deadline = time.monotonic() + 30
    while any(map(alive, processes)):
        assert time.monotonic() < deadline, "a follower has outlived its leader"
        time.sleep(0.05)


def test_two_processes_train_the_agent_that_one_trains(shared: Project, finished: Project) -> None:
    two, one = (load_file(project.model / "agent.safetensors") for project in (shared, finished))
    for name, weight in one.items():
        assert (two[name] - weight).abs().max() <= 1e-4 * weight.abs().max(), name
    for table in ("losses.csv", "curve.csv", "episodes.csv"):
        rows = [list(csv.DictReader((project.trained / table).open())) for project in (shared, finished)]
        assert len(rows[0]) == len(rows[1]) > 0
        for ours, theirs in zip(*rows, strict=True):
            assert {name: float(value) for name, value in ours.items()} == pytest.approx(
                {name: float(value) for name, value in theirs.items()}, rel=1e-3, abs=1e-4
            )
    assert (shared.trained / "losses.csv").read_bytes() != (finished.trained / "losses.csv").read_bytes()


def test_an_interrupted_one_leaves_nobody_and_goes_on_bit_for_bit(
    collected: Project, shared: Project, tmp_path: Path
) -> None:
    project = collected.copy(tmp_path / "project")
    write_params(project.root / "params.yaml", TWO)
    for moment, signum, code in ((UPDATES + 2, signal.SIGTERM, 143), (2 * UPDATES + 5, signal.SIGKILL, -9)):
        stage = project.start("train", *ENTRY)
        stage.wait_until(lambda reached=moment: project.updates_logged() >= reached)  # type: ignore[misc]
        helpers = followers(stage)
        assert stage.signal(signum) == code, stage.said
        assert_gone(helpers)
    saved = Checkpoints(project.work / "checkpoints").latest()
    assert saved is not None
    assert saved["module"]["counters"]["updates"] >= UPDATES + 2
    stage = project.run("train", *ENTRY)
    assert stage.end() == 0, stage.said
    assert project.files("models", "results/train") == shared.files("models", "results/train")


def test_what_is_not_finite_ends_all_of_them(project: Project) -> None:
    write_params(project.root / "params.yaml", {**TWO, "model": {"observation_scale": 1e38}})
    stage = project.start("train", *ENTRY)
    assert stage.end() == 2
    assert "error: update 0: model/image" in stage.said
    assert "Traceback" not in stage.said


def test_a_lost_process_ends_the_stage_with_a_word(project: Project) -> None:
    write_params(project.root / "params.yaml", TWO)
    stage = project.start("train", *ENTRY)
    stage.wait_until(project.checkpoints)
    (helper,) = followers(stage)
    os.kill(helper, signal.SIGKILL)
    assert stage.end() == 2, stage.said
    assert "a process that shared the batch has ended with code -9; run the same command again to go on" in stage.said
