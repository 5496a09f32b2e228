"""What a fleet on one machine survives; the next run of the same command ends like `dvc repro`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import COMMAND
from fleet_project import TASK, FleetProject
from project import assert_ended, children_of

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.timeout(1800)]
TRAIN = ("--cells", "train@*")
LONG = {"FAKE_STEPS": "40", "FAKE_SECONDS": "0.5"}
"""Cells that are long enough to be interrupted; a resumed one is told to hurry."""
RESUMED = {"FAKE_STEPS": "40", "FAKE_SECONDS": "0"}


def wait_until(happened: Callable[[], object], running: subprocess.Popen[str]) -> None:
    while not happened():
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.05)


def training(project: FleetProject) -> bool:
    """Whether both trainings have done some steps."""
    return all(project.steps()[f"train@{TASK}-{variant}-0", 2] for variant in ("dreamer", "ccwm"))


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    return [pid, *(each for child in children_of(pid) for each in family(child))]


def guards(project: FleetProject) -> list[int]:
    """The guards of this project's cells, and the cells; they have left the fleet's own family."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(project.root / ".work").encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def assert_whole(project: FleetProject, sequential: FleetProject) -> None:
    """The same command again ends as an undisturbed run, and no step was done twice."""
    project.fleet(*TRAIN, **RESUMED)
    project.assert_like(sequential, "collect", "train")
    assert not [cell for cell in project.stale() if cell.startswith(("collect", "train"))]
    assert set(project.steps().values()) == {1}
    assert guards(project) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(project: FleetProject, sequential: FleetProject, signum: signal.Signals) -> None:
    running = project.open_fleet(*TRAIN, **LONG)
    wait_until(lambda: training(project), running)
    processes = [*family(running.pid), *guards(project)]
    running.send_signal(signum)
    said, _ = running.communicate()
    assert running.returncode == 128 + signum, said
    assert_ended(processes)
    assert_whole(project, sequential)


def test_the_driver_killed_with_9(project: FleetProject, sequential: FleetProject) -> None:
    running = project.open_fleet(*TRAIN, **LONG)
    wait_until(lambda: training(project), running)
    processes = [*family(running.pid), *guards(project)]
    running.kill()
    running.wait()
    assert_ended(processes, seconds=120)
    assert_whole(project, sequential)


def test_a_worker_killed_with_9(project: FleetProject, sequential: FleetProject) -> None:
    running = project.open_fleet(*TRAIN, FAKE_STEPS="40", FAKE_SECONDS="0.3")
    wait_until(lambda: training(project), running)
    stage = project.pids()[-1]
    workers = [pid for pid in family(running.pid) if b"ray::" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    (worker,) = [pid for pid in workers if f"train@{TASK}-ccwm".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(worker, signal.SIGKILL)
    assert_ended([worker], seconds=60)
    said, _ = running.communicate()
    assert running.returncode == 0, said
    assert [line for line in said.splitlines() if line.startswith(f"train@{TASK}-ccwm-0") and "run again" in line]
    assert_ended([stage])
    assert_whole(project, sequential)


def test_a_cell_that_fails_is_named_and_stops_no_other(project: FleetProject, sequential: FleetProject) -> None:
    bad = f"train@{TASK}-dreamer-0"
    running = project.open_fleet("--cells", "evaluate@*", FAKE_FAIL=bad, FAKE_SECONDS="2")
    wait_until(lambda: (project.root / ".work" / "fleet" / "status.json").is_file(), running)
    refused = project.command(*COMMAND, "fleet", "run", code=2)
    assert "ccwm fleet stop" in refused
    said, _ = running.communicate()
    assert running.returncode == 1, said
    failed = {line.split()[1] for line in said.splitlines() if line.startswith("failed:")}
    assert failed == {bad, f"evaluate@{TASK}-dreamer-0"}
    assert "this cell fails" in project.command(*COMMAND, "fleet", "logs", bad)
    assert "2 failed" in project.command(*COMMAND, "fleet", "status")
    tampered = next((project.root / ".work" / "fleet" / "slots").glob("*/project/pipeline/train.py"))
    tampered.write_text("raise SystemExit('other code')\n")
    project.fleet("--cells", "evaluate@*")
    project.assert_like(sequential, "collect", "train", "evaluate")
    assert set(project.steps().values()) == {1}


def test_a_full_disk_fails_the_cell_and_loses_nothing(project: FleetProject, sequential: FleetProject) -> None:
    said = project.fleet(*TRAIN, code=1, FAKE_FULL=f"train@{TASK}-ccwm-0", **RESUMED)
    assert f"failed: train@{TASK}-ccwm-0" in said
    assert "No space left" in project.command(*COMMAND, "fleet", "logs", f"train@{TASK}-ccwm-0")
    assert f"train@{TASK}-dreamer-0" in project.lock()
    assert_whole(project, sequential)
