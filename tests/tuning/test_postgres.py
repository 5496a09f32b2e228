"""A search in a real PostgreSQL: heartbeats, and two processes, one of which is killed."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState
from project import SERVER
from tuning_project import Project, make_settings

from ccwm.settings.tune import Tune
from ccwm.tuning.storage import MISSED_HEARTBEATS, open_storage, study_lock
from ccwm.tuning.workers import Workers, counted, first_number


def open_workers(tune: Tune, folder: Path) -> tuple[optuna.Study, Workers]:
    storage: Any = open_storage(tune)
    study = optuna.create_study(storage=storage, study_name="beating", direction="maximize", load_if_exists=True)
    return study, Workers(folder, study_lock(tune), storage.record_heartbeat)


def hang(tune: Tune, folder: Path, begun: Any) -> None:
    """In a process: begin a trial and never end it."""
    study, workers = open_workers(tune, folder)

    def hanging(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0.0, 1.0)
        with workers.running(trial):
            begun.set()
            time.sleep(600)
        return 0.0

    with workers.lock:
        study.optimize(hanging, n_trials=1)


def test_a_trial_is_retried_when_its_process_has_missed_its_heartbeats(tmp_path: Path, database: str) -> None:
    tune = make_settings(storage=database, heartbeat=1).tune
    study, workers = open_workers(tune, tmp_path)
    begun = SERVER.Event()
    process = SERVER.Process(target=hang, args=(tune, tmp_path, begun))
    process.start()
    assert begun.wait(60)
    time.sleep(MISSED_HEARTBEATS + 1)
    with workers.lock:
        assert workers.retry_dead(study) == []  # it hangs, but its heart beats
    process.kill()
    process.join()
    retried: list[int] = []
    while not retried:
        with workers.lock:
            retried = workers.retry_dead(study)
        time.sleep(0.2)
    assert retried == [0]
    assert [trial.state for trial in study.trials] == [TrialState.FAIL, TrialState.WAITING]
    assert study.trials[1].params == study.trials[0].params
    with warnings.catch_warnings(action="ignore"):  # Optuna wants heartbeats within Study.optimize
        study.ask()  # a process that dies before it owns the retry
    with workers.lock:
        assert workers.retry_dead(study) == [1]
    assert first_number(study.trials[2]) == 0
    assert counted(study.trials) == []


@pytest.mark.slow
def test_processes_that_start_at_once_share_a_study_and_a_killed_one_s_trial_is_retried(
    project: Project, database: str
) -> None:
    survivor = project.kill_one(*(project.start("--storage", database, name=name) for name in ("first", "second")))
    assert survivor.end() == 0, survivor.said
    assert "it is retried" in survivor.said
    trials = project.trials()
    assert len(trials) == 3  # nothing lost, nothing counted twice
    assert (trials["trial"] != trials["first_number"]).sum() == 1
    assert sorted(trials["first_number"]) == sorted(set(trials["first_number"]))
    assert list(trials.sort_values("first_number")["anchor"][:2]) == ["default", "paper"]
    assert project.summary()["winner"] is not None

    project.run("--storage", database, "--trials", "4")
    assert len(project.trials()) == 4
