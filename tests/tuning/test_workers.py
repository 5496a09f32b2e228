"""Processes that die: their trials are retried, none is lost and none counts twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from filelock import FileLock
from optuna import Study
from optuna.trial import TrialState
from project import SERVER

from ccwm.training.finite import NotFinite
from ccwm.tuning.storage import JournalLock
from ccwm.tuning.workers import RETRIES, WORKER, Workers, counted, first_number


def make_study(folder: Path) -> Study:
    journal = folder / "journal.jsonl"
    backend = optuna.storages.journal.JournalFileBackend(str(journal), lock_obj=JournalLock(journal))  # type: ignore[arg-type]
    storage = optuna.storages.JournalStorage(backend)
    return optuna.create_study(storage=storage, study_name="s", direction="maximize", load_if_exists=True)


def make_workers(folder: Path) -> Workers:
    return Workers(folder, FileLock(folder / "study.lock", thread_local=False))


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    made = make_workers(tmp_path)
    with made.signed_in():
        yield made


def work(folder: Path, trials: int, begun: Any, *, hang: bool) -> None:
    """In a process: run trials, or begin one and never end it."""
    workers = make_workers(folder)
    with workers.signed_in():
        study = make_study(folder)
        for _ in range(trials):
            with workers.lock:
                trial = study.ask()
                with workers.running(trial):  # which frees the lock
                    value = trial.suggest_float("x", 0.0, 1.0)
                    begun.put(trial.number)
                    if hang:
                        trial.report(0.25, 1)
                        trial.set_user_attr("seeds", {"0": 0.25})
                        begun.put("hanging")
                        signal.pause()
                    study.tell(trial, value)


def test_the_trial_of_a_killed_process_is_retried_with_what_it_had_finished(tmp_path: Path, workers: Workers) -> None:
    make_study(tmp_path)
    queues = [SERVER.Queue() for _ in range(3)]
    started = [
        SERVER.Process(target=work, args=(tmp_path, 3, queue), kwargs={"hang": number == 2})
        for number, queue in enumerate(queues)
    ]
    for process in started:
        process.start()
    hanging = queues[2].get(timeout=60)
    assert queues[2].get(timeout=60) == "hanging"
    for process in started[:2]:
        process.join()
    assert [process.exitcode for process in started[:2]] == [0, 0]
    study = make_study(tmp_path)
    with workers.lock:
        assert workers.retry_dead(study) == []  # it hangs, but it is alive
    assert started[2].pid is not None
    os.kill(started[2].pid, signal.SIGKILL)
    started[2].join()
    with workers.lock:
        assert workers.retry_dead(study) == [hanging]
        assert workers.retry_dead(study) == []

    assert len(counted(study.trials)) == 6  # neither what is retried nor what waits counts
    trial = study.ask()
    with workers.running(trial):
        again = study.trials[trial.number]
        assert first_number(again) == hanging
        assert trial.suggest_float("x", 0.0, 1.0) == study.trials[hanging].params["x"]
        assert trial.user_attrs["seeds"] == {"0": 0.25}
        assert again.intermediate_values == {1: 0.25}
        study.tell(trial, 1.0)
    assert len(counted(study.trials)) == 7
    assert [each.state for each in study.trials].count(TrialState.FAIL) == 1


def test_a_process_that_dies_between_the_mark_and_the_retry_leaves_one_retry(tmp_path: Path, workers: Workers) -> None:
    study = make_study(tmp_path)
    trial = study.ask()
    trial.set_user_attr(WORKER, "nobody")
    study.tell(trial, state=TrialState.FAIL)  # and here the process that found it dead dies
    with workers.lock:
        assert workers.retry_dead(study) == [0]
        assert workers.retry_dead(study) == []
    assert [trial.state for trial in study.trials] == [TrialState.FAIL, TrialState.WAITING]


def test_a_process_that_dies_before_its_trial_has_an_owner_leaves_one_retry(tmp_path: Path, workers: Workers) -> None:
    study = make_study(tmp_path)
    study.ask()
    with workers.lock:
        assert workers.retry_dead(study) == [0]
    study.ask()  # the retry, begun by a process that dies at once
    with workers.lock:
        assert workers.retry_dead(study) == [1]
    assert len(counted(study.trials)) == 0
    assert [trial.state for trial in study.trials] == [TrialState.FAIL, TrialState.FAIL, TrialState.WAITING]


def test_a_trial_that_kills_every_process_is_left_as_failed(tmp_path: Path, workers: Workers) -> None:
    study = make_study(tmp_path)
    for _ in range(RETRIES + 1):
        study.ask().set_user_attr(WORKER, "nobody")
        with workers.lock:
            workers.retry_dead(study)
    assert not study.get_trials(states=(TrialState.WAITING,))
    assert len(counted(study.trials)) == 1


@pytest.mark.parametrize("error", [SystemExit(143), OSError("disk full")])
def test_a_trial_that_is_given_back_is_retried_however_often(
    tmp_path: Path, workers: Workers, error: BaseException
) -> None:
    study = make_study(tmp_path)

    def interrupted(trial: optuna.Trial) -> float:
        with workers.running(trial):
            raise error

    for attempt in range(RETRIES + 2):
        with workers.lock:
            with pytest.raises(type(error)):
                study.optimize(interrupted, n_trials=1)
            assert workers.retry_dead(study) == [attempt]
    assert first_number(study.trials[-1]) == 0


def test_a_trial_that_fails_by_its_own_fault_is_not_retried(tmp_path: Path, workers: Workers) -> None:
    study = make_study(tmp_path)

    def blamed(trial: optuna.Trial) -> float:
        with workers.running(trial):
            raise NotFinite("the loss is NaN")

    with workers.lock:
        study.optimize(blamed, n_trials=1, catch=(NotFinite,))
        assert workers.retry_dead(study) == []
    assert len(counted(study.trials)) == 1


def test_a_pruned_trial_is_not_retried(tmp_path: Path, workers: Workers) -> None:
    study = make_study(tmp_path)

    def pruned(trial: optuna.Trial) -> float:
        with workers.running(trial):
            raise optuna.TrialPruned

    with workers.lock:
        study.optimize(pruned, n_trials=1)
        assert workers.retry_dead(study) == []
    assert [trial.state for trial in study.trials] == [TrialState.PRUNED]
