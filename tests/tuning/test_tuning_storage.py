"""Storages: a journal that kills cannot break, processes that vanish, a database that is away."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from ccwm.tuning import storage as storages
from ccwm.tuning.storage import StorageAway, open_storage, shown
from ccwm.tuning.workers import WORKER, Crew, queue_retry, root_number, standing

optuna.logging.set_verbosity(optuna.logging.ERROR)

WORK = """
import sys, time, pathlib, optuna
from ccwm.tuning.storage import open_storage
from ccwm.tuning.workers import Crew, WORKER
folder = pathlib.Path(sys.argv[1])
crew = Crew(folder)
storage = open_storage(None, folder / "journal.jsonl", heartbeat=1)
study = optuna.create_study(storage=storage, study_name="s", direction="maximize", load_if_exists=True)
for _ in range(int(sys.argv[2])):
    with crew.gate():
        trial = study.ask()
        trial.set_user_attr(WORKER, crew.name)
    trial.suggest_float("x", 0.0, 1.0)
    if len(sys.argv) > 3:
        print(trial.number, flush=True)
        time.sleep(600)
    study.tell(trial, trial.params["x"])
"""


def worker(folder: Path, trials: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORK, str(folder), str(trials), *more], stdout=subprocess.PIPE, text=True
    )


def load(folder: Path) -> optuna.Study:
    return optuna.load_study(study_name="s", storage=open_storage(None, folder / "journal.jsonl", heartbeat=1))


def test_processes_that_start_at_the_same_moment_all_work_and_a_killed_one_s_trial_is_begun_again(
    tmp_path: Path,
) -> None:
    started = [worker(tmp_path, 3), worker(tmp_path, 3), worker(tmp_path, 1, "hang")]
    assert started[2].stdout is not None
    hanging = int(started[2].stdout.readline())
    assert [process.wait() for process in started[:2]] == [0, 0]
    study, crew = load(tmp_path), Crew(tmp_path)
    with crew.gate():
        assert crew.retry_dead(study) == []  # it hangs, but it lives
    os.kill(started[2].pid, signal.SIGKILL)
    started[2].wait()
    with crew.gate():
        assert crew.retry_dead(study) == [hanging]
        assert crew.retry_dead(study) == []

    assert len(standing(study.trials)) == 6  # what is retried does not count, what waits does not count yet
    trial = study.ask()
    trial.set_user_attr(WORKER, crew.name)
    again = study.trials[trial.number]
    assert root_number(again) == hanging
    assert trial.suggest_float("x", 0.0, 1.0) == study.trials[hanging].params["x"]
    study.tell(trial, 1.0)
    assert len(standing(study.trials)) == 7
    assert [each.state for each in study.trials].count(TrialState.FAIL) == 1
    crew.leave()


def test_a_process_that_dies_between_the_retry_and_its_mark_leaves_one_retry(tmp_path: Path) -> None:
    process = worker(tmp_path, 1, "hang")
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    study, crew = load(tmp_path), Crew(tmp_path)
    (dead,) = study.get_trials()
    queue_retry(study, dead)  # and here the process dies, the old trial still running
    with crew.gate():
        assert crew.retry_dead(study) == [dead.number]
    assert [trial.state for trial in study.trials] == [TrialState.FAIL, TrialState.WAITING]
    crew.leave()


def test_a_trial_that_kills_every_process_is_given_up_at_last(tmp_path: Path) -> None:
    study = optuna.create_study(
        storage=open_storage(None, tmp_path / "journal.jsonl", heartbeat=1), study_name="s", direction="maximize"
    )
    crew = Crew(tmp_path)
    for _ in range(storages.RETRIES + 1):
        study.ask().set_user_attr(WORKER, "nobody")
        with crew.gate():
            crew.retry_dead(study)
    assert not study.get_trials(states=(TrialState.WAITING,))
    assert len(standing(study.trials)) == 1
    crew.leave()


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    study = optuna.create_study(storage=open_storage(None, journal, heartbeat=1), study_name="s")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code":4,"wor')  # killed while writing

    again = load(tmp_path)
    assert journal.read_bytes() == whole
    with journal.open("ab") as file:  # and once more, while others have the study open
        file.write(b'{"op_code":4')
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert [len(each.trials) for each in (study, again, load(tmp_path))] == [3, 3, 3]


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("no journal\n{}\n")
    with pytest.raises(StorageAway, match=r"journal\.jsonl is damaged"):
        open_storage(None, tmp_path / "journal.jsonl", heartbeat=1)


def test_a_database_that_is_away_is_told_at_once_without_its_password(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    address = f"postgresql://me:secret@127.0.0.1:{port}/studies"
    with pytest.raises(StorageAway) as refused:
        open_storage(address, tmp_path / "journal.jsonl", heartbeat=1)
    assert "tune.storage: postgresql://me:***@127.0.0.1" in str(refused.value)
    assert "Connection refused" in str(refused.value)
    assert "secret" not in str(refused.value) + shown(address, tmp_path)


def test_a_database_that_never_answers_is_waited_for_so_long_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storages, "CONNECT_SECONDS", 2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(StorageAway, match="does not answer"):
            open_storage(f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/s", tmp_path / "j", heartbeat=1)
    assert time.monotonic() - began < 20
