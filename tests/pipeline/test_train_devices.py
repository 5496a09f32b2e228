"""Several processes that share every batch of a training stage: the same agent, and no process is left behind."""

from __future__ import annotations

import csv
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from project import ARGUMENTS, TRAIN, UPDATES, Process, Project, assert_ended, children_of
from safetensors.torch import load_file

from ccwm.training.checkpoints import Checkpoints

TWO = {"trainer": {"devices": 2}}
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="session")
def shared(collected: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose agent was trained by two processes without interruption; read only."""
    project = collected.copy(tmp_path_factory.mktemp("shared") / "project")
    project.set_params(TWO)
    project.run("train", *ARGUMENTS)
    return project


@pytest.fixture
def two(project: Project) -> Project:
    """A collected project whose training takes two processes."""
    project.set_params(TWO)
    return project


def ranks(process: Process) -> list[int]:
    """The other ranks that a stage has started."""
    return [pid for pid in process.children if is_rank(pid)]


def is_rank(pid: int) -> bool:
    try:
        return b"train.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def start(project: Project, updates: int) -> tuple[Process, int]:
    """A stage that has just reported this update, and its other rank."""
    process = project.start("train", *ARGUMENTS)
    process.wait_until(lambda: ranks(process) and project.updates_logged() >= updates)
    (rank,) = ranks(process)
    return process, rank


def saved_updates(project: Project) -> int:
    saved = Checkpoints(project.work / "checkpoints").latest()
    assert saved is not None
    return int(saved["updater"]["module"]["_extra_state"]["updates"])


def test_two_processes_train_the_agent_that_one_trains(shared: Project, finished: Project) -> None:
    two, one = (load_file(project.model / "agent.safetensors") for project in (shared, finished))
    for name, weight in one.items():
        assert (two[name] - weight).abs().max() <= 1e-4 * weight.abs().max().clamp_min(1), name
    for table in ("losses.csv", "curve.csv", "episodes.csv"):
        rows = [list(csv.DictReader((project.trained / table).open())) for project in (shared, finished)]
        assert len(rows[0]) == len(rows[1]) > 0
        for ours, theirs in zip(*rows, strict=True):
            assert {name: float(value) for name, value in ours.items()} == pytest.approx(
                {name: float(value) for name, value in theirs.items()}, rel=1e-3, abs=1e-4
            )
    # Sums of other parts have other last bits: it was not one process that did it all.
    assert (shared.trained / "losses.csv").read_bytes() != (finished.trained / "losses.csv").read_bytes()


def kill_rank(project: Project) -> None:
    process, rank = start(project, 3)
    os.kill(rank, signal.SIGKILL)
    assert process.end() in (2, -signal.SIGKILL), process.said  # Fabric may be first to end the main process
    assert_ended([rank])
    assert process.end() != 2 or "error: " in process.said


def terminate_main(project: Project) -> None:
    process, rank = start(project, UPDATES + 2)
    assert process.signal(signal.SIGTERM) == 143, process.said
    assert_ended([rank])
    assert saved_updates(project) >= UPDATES + 2
    assert [run.info.status for run in project.mlflow_runs("train")] == ["KILLED"]


def kill_main(project: Project) -> None:
    process, rank = start(project, 2 * UPDATES + 3)
    assert process.signal(signal.SIGKILL) == -signal.SIGKILL
    assert_ended([rank])
    assert not project.files("models", "results/train")


@pytest.mark.parametrize(
    "deaths",
    [(kill_rank, kill_main), pytest.param((kill_rank, terminate_main, kill_main), marks=pytest.mark.slow)],
    ids=["killed", "also terminated"],
)
def test_every_death_leaves_nobody_and_the_run_ends_the_same(
    deaths: Sequence[Callable[[Project], None]], two: Project, shared: Project
) -> None:
    for die in deaths:
        die(two)
    two.run("train", *ARGUMENTS)
    assert two.files("models", "results/train") == shared.files("models", "results/train")
    assert [run.info.status for run in two.mlflow_runs("train")] == ["FINISHED"]


@pytest.mark.slow
@pytest.mark.parametrize("who", ["main", "rank"])
def test_a_death_before_the_processes_have_met_leaves_nobody(who: str, two: Project) -> None:
    process = two.start("train", *ARGUMENTS)
    process.wait_until(lambda: ranks(process))
    (rank,) = ranks(process)
    os.kill(process.pid if who == "main" else rank, signal.SIGKILL)
    assert process.end() == -signal.SIGKILL  # of the rank: by Fabric, which finds it dead
    assert_ended([rank], seconds=60)  # it has to import torch before it can ask for its launcher


@pytest.mark.slow
def test_ctrl_c_goes_to_all_processes_and_the_main_one_saves(two: Project) -> None:
    process, rank = start(two, UPDATES + 2)
    os.kill(rank, signal.SIGINT)
    time.sleep(0.1)
    assert process.signal(signal.SIGINT) == 130, process.said
    assert_ended([rank])
    assert "Traceback" not in process.said
    assert saved_updates(two) >= UPDATES + 2


@pytest.mark.slow
def test_what_is_not_finite_ends_all_processes_and_is_named(two: Project) -> None:
    two.set_params({"model": {"observation_scale": 1e38}})
    said = two.run("train", *ARGUMENTS, code=2)
    assert "error: update 0: model/observation" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_torchrun_resumes_ends_the_same_and_leaves_nobody(two: Project, shared: Project) -> None:
    command = (*TORCHRUN, "pipeline/train.py", *ARGUMENTS)
    for updates, signum in ((3, signal.SIGKILL), (UPDATES + 2, signal.SIGTERM)):
        agent = two.open(*command)
        while two.updates_logged() < updates or len(workers := children_of(agent.pid)) < 2:
            assert agent.poll() is None, agent.communicate()[0]
            time.sleep(0.01)
        main = int((two.work / "holder").read_text().removeprefix("process "))
        assert main in workers
        os.kill(main, signum)
        said, _ = agent.communicate()
        assert agent.returncode != 0, said
        assert_ended([*workers, agent.pid])
        assert not two.files("models", "results/train")
    assert saved_updates(two) >= UPDATES + 2
    two.command(*command)
    assert two.files("models", "results/train") == shared.files("models", "results/train")
    assert [run.info.status for run in two.mlflow_runs("train")] == ["FINISHED"]


@pytest.mark.slow
def test_torchrun_with_another_number_of_processes_is_refused(project: Project) -> None:
    said = project.command(*TORCHRUN, "pipeline/train.py", *ARGUMENTS, code=1)
    assert "trainer.devices" in said
    assert not (project.root / TRAIN.model).exists()
