"""`ccwm tune --fleet` on a local Ray: real processes on one study, one of them killed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

import pandas as pd
import pytest
from cli_helpers import COMMAND
from fleet_project import family
from project import Project, assert_ended, is_alive, make_project
from tuning_project import STUDY, write_params

from ccwm.fleet.worker import sees_home

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.timeout(1800)]


@pytest.fixture
def searching(tmp_path: Path, empty_store: Path) -> Project:
    """A project with a tiny search of states, on one core a process."""
    made = make_project(tmp_path / "project", store=empty_store)
    write_params(made.params, seeds=[0], trials=3)
    made.set_params({"trainer": {"threads": 1}})
    return made


@pytest.mark.slow
def test_processes_share_a_study_and_a_killed_one_loses_no_trial(searching: Project) -> None:
    folder = searching.root / ".work" / "tune" / STUDY
    fleet = searching.open(*COMMAND, "tune", "--fleet", "2", "--trials", "4")
    try:
        while not (held := [path.read_text() for path in folder.glob("work/*/*/holder")]) or not held[0]:
            assert fleet.poll() is None, fleet.communicate()[0]
            time.sleep(0.02)
        victim = int(held[0].removeprefix("process "))
        os.kill(victim, signal.SIGKILL)
        said, _ = fleet.communicate()
    finally:
        fleet.kill()
    assert fleet.returncode == 1, said  # the study is whole, and one process is named
    assert re.search(r"process [01] failed: exit code -9; see .*process-[01]\.log", said)
    assert "its process is gone; it is retried" in said
    trials = pd.read_csv(searching.root / "results" / "tune" / STUDY / "trials.csv")
    assert len(trials) == 4
    assert set(trials["state"]) <= {"complete", "pruned"}
    workers = re.findall(r'"worker":\s*"([0-9a-f]+)"', (folder / "journal.jsonl").read_text())
    assert len(set(workers)) == 2
    assert_ended([victim])


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_ctrl_c_leaves_nobody_and_a_study_to_resume(searching: Project) -> None:
    folder, command = searching.root / ".work" / "tune" / STUDY, (*COMMAND, "tune", "--fleet", "2", "--trials", "6")
    fleet = searching.open(*command)
    try:
        victim = next(iter(wait_for_trials(fleet, folder)))
        worker = worker_of(fleet.pid, victim)
        os.kill(worker, signal.SIGKILL)
        assert_ended([worker, victim], seconds=60)  # a guard ends what its worker began
        wait_for_trials(fleet, folder, before={victim})
        processes = [*family(fleet.pid), *processes_in(searching.root)]
        fleet.send_signal(signal.SIGINT)
        said, _ = fleet.communicate()
    finally:
        fleet.kill()
    assert fleet.returncode == 128 + signal.SIGINT, said
    assert re.search(r"process [01] is begun again", said)
    assert_ended(processes, seconds=60)
    assert processes_in(searching.root) == []

    said = searching.command(*command)
    assert "failed" not in said
    trials = pd.read_csv(searching.root / "results" / "tune" / STUDY / "trials.csv")
    assert len(trials) == trials["first_number"].nunique() == 6
    assert set(trials["state"]) <= {"complete", "pruned"}


def wait_for_trials(fleet: Popen[str], folder: Path, before: Iterable[int] = ()) -> set[int]:
    """The processes that hold a trial, as soon as there is one that did not before."""
    while not (found := holders(folder) - {*before}):
        assert fleet.poll() is None, fleet.communicate()[0]
        time.sleep(0.02)
    return found


def holders(folder: Path) -> set[int]:
    """The living processes that have a trial's work directory."""
    told = [path.read_text() for path in folder.glob("work/*/*/holder")]
    return {pid for text in told if text and is_alive(pid := int(text.removeprefix("process ")))}


def worker_of(fleet: int, process: int) -> int:
    """The Ray worker that holds a tuning process's guard by a pipe."""
    guard = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    pipe = set(pipes(guard))
    (found,) = [pid for pid in family(fleet) if b"ray::" in command_of(pid) and pipe & set(pipes(pid))]
    return found


def pipes(pid: int) -> list[str]:
    return [name for path in Path(f"/proc/{pid}/fd").iterdir() if (name := os.readlink(path)).startswith("pipe:")]


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def processes_in(root: Path) -> list[int]:
    """The processes that run in a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found += [int(path.name)] if (path / "cwd").readlink() == root.resolve() else []
    return found


def test_more_processes_than_fit_are_refused(searching: Project) -> None:
    said = searching.command(*COMMAND, "tune", "--fleet", "500", code=2)
    assert "500 processes need 500 CPUs, the whole cluster has" in said
    assert "--address is for --fleet" in searching.command(*COMMAND, "tune", "--address", "auto", code=2)


def test_a_host_that_shares_the_project_reads_its_marker(tmp_path: Path) -> None:
    marker = tmp_path / ".work" / "fleet" / "marker"
    assert not sees_home(str(tmp_path), "one")
    marker.parent.mkdir(parents=True)
    marker.write_text("one")
    assert sees_home(str(tmp_path), "one")
    assert not sees_home(str(tmp_path), "another")
