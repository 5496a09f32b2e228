"""What a fleet on one machine survives; the next run of the same command ends like `dvc repro`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from fleet_project import ENDLESS, TASK, TRAIN, TRAININGS, FleetProject, family
from project import Process, assert_ended

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.timeout(1800)]


def test_a_worker_and_then_the_driver_killed_with_9(project: FleetProject, sequential: FleetProject) -> None:
    cell = TRAININGS[1]
    project.tell(**ENDLESS)
    running = project.open_fleet(*TRAIN)
    running.wait_until(project.is_training)
    stage = project.pids(cell)[-1]
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in family(running.pid)}
    (worker,) = [pid for pid, command in commands.items() if b"ray::" in command and cell.encode() in command]
    os.kill(worker, signal.SIGKILL)
    assert_ended([worker, stage], seconds=60)
    running.wait_until(lambda: project.pids(cell)[-1] != stage)
    assert [line for line in running.said.splitlines() if line.startswith(cell) and "run again" in line]

    processes = [*family(running.pid), *project.guards()]
    running.signal(signal.SIGKILL)
    assert_ended(processes, seconds=120)
    project.assert_whole(sequential)


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(project: FleetProject, sequential: FleetProject, signum: signal.Signals) -> None:
    running, processes = train(project)
    assert running.signal(signum) == 128 + signum, running.said
    assert_ended(processes)
    project.assert_whole(sequential)


@pytest.mark.slow
def test_it_is_stopped_from_another_shell(project: FleetProject, sequential: FleetProject) -> None:
    running, processes = train(project)
    assert "resumes" in project.said("fleet", "stop")
    assert running.end() == 128 + signal.SIGINT, running.said
    assert_ended(processes)
    project.assert_whole(sequential)


def train(project: FleetProject) -> tuple[Process, list[int]]:
    """A fleet with two trainings under way, and all of its processes."""
    project.tell(**ENDLESS)
    running = project.open_fleet(*TRAIN)
    running.wait_until(project.is_training)
    return running, [*family(running.pid), *project.guards()]


def test_cells_that_fail_are_named_and_stop_no_other(project: FleetProject, sequential: FleetProject) -> None:
    (bad, good), full = TRAININGS, f"evaluate@{TASK}-ccwm-0"
    faults = {"fail": [bad], "full": [full]}
    project.tell(**faults, steps={good: 10000}, seconds=0.1)
    running = project.open_fleet("--cells", "evaluate@*")
    running.wait_until((project.root / ".work" / "fleet" / "status.json").is_file)
    assert "ccwm fleet stop" in project.said("fleet", "run", "--cells", "train@*", code=2)
    project.tell(**faults)
    assert running.end() == 1, running.said
    failed = {line.split()[1] for line in running.said.splitlines() if line.startswith("failed:")}
    assert failed == {bad, full, f"evaluate@{TASK}-dreamer-0"}
    assert "this cell fails" in project.said("fleet", "logs", bad)
    assert "No space left" in project.said("fleet", "logs", full)
    assert "3 failed" in project.said("fleet", "status")
    assert {f"collect@{TASK}-0", good} == set(project.lock())

    tampered = next((project.root / ".work" / "fleet" / "slots").glob("*/project/pipeline/train.py"))
    tampered.write_text("raise SystemExit('other code')\n")
    project.tell()
    project.fleet("--cells", "evaluate@*")
    project.assert_like(sequential, "collect", "train", "evaluate")
    assert set(project.steps().values()) == {1}
