"""`ccwm tune --fleet` on a local Ray: real processes on one study, one of them killed."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
from cli_helpers import COMMAND
from project import Project, assert_ended, make_project
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
