"""Studies that are begun, joined, begun again after a death, refused, and read."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import TrialState, create_trial
from tuning_project import ROOT, STUDY, make_settings

from ccwm.errors import UserError
from ccwm.settings.parsing import BadParams
from ccwm.studies.search import Candidate, TrialRow
from ccwm.tuning.points import make_space
from ccwm.tuning.study import (
    ANCHOR,
    CANDIDATE,
    choose,
    load_studies,
    open_fresh_study,
    open_study,
    queue_candidates,
    read_outcome,
)


@pytest.fixture(autouse=True)
def _presets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def open_tiny(storage: BaseStorage, **tune: Any) -> optuna.Study:
    settings = make_settings(**tune)
    return open_study(settings, make_space(settings), storage)


def test_a_study_begins_with_the_anchors_once() -> None:
    storage = InMemoryStorage()
    study = open_tiny(storage)
    assert [trial.user_attrs[ANCHOR] for trial in study.trials] == ["default", "paper"]
    assert len(open_tiny(storage).trials) == 2
    assert {trial.state for trial in study.trials} == {TrialState.WAITING}


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_study_whose_first_process_died_while_it_began_is_whole(
    written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = {"sampler": "grid", "grid": 2, "space": {"truncation.threshold": {"kind": "float", "low": 0.1, "high": 0.5}}}
    storage, enqueue, calls = InMemoryStorage(), optuna.Study.enqueue_trial, []

    def dying(*arguments: Any, **options: Any) -> None:
        if len(calls) == written:
            raise KeyboardInterrupt
        calls.append(1)
        enqueue(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(optuna.Study, "enqueue_trial", dying)
        with pytest.raises(KeyboardInterrupt):
            open_tiny(storage, **grid)
    study = open_tiny(storage, **grid)
    values = [trial.system_attrs["fixed_params"]["truncation.threshold"] for trial in study.trials]
    assert sorted(values) == [0.1, 0.5]  # the default and the paper's 0.1 is a point of the grid
    assert study.trials[0].user_attrs[ANCHOR] == "default, paper"


def test_other_settings_are_refused_by_key_and_a_longer_budget_is_not() -> None:
    storage = InMemoryStorage()
    open_tiny(storage)
    open_tiny(storage, trials=99, top=2, keep="all", hours=1.0)
    with pytest.raises(BadParams) as refused:
        open_tiny(storage, seeds=[0, 2], overrides={"train.updates": 7})
    assert "tune.seeds was [0, 1], is now [0, 2]" in str(refused.value)
    assert "train.updates was 2, is now 7" in str(refused.value)
    assert "truncation.threshold" not in str(refused.value)  # searched, so that its default may change


def test_a_candidate_is_queued_once_for_the_fresh_seeds() -> None:
    storage = InMemoryStorage()
    settings = make_settings()
    fresh = open_fresh_study(open_tiny(storage), storage)
    point = {"truncation.threshold": 0.2, "truncation.window": 4, "truncation.lookback": 1}
    best = Candidate(TrialRow(9, 7, "complete", "", point, 1.0, {0: 1.0}), None)
    for _ in range(2):
        queue_candidates(fresh, make_space(settings), [best])
    (trial,) = fresh.trials
    assert trial.user_attrs[CANDIDATE] == 7
    assert make_space(settings).suggest(fresh.ask()) == point


def test_an_unknown_study_is_refused_with_the_known_ones() -> None:
    storage = InMemoryStorage()
    open_fresh_study(open_tiny(storage), storage)
    assert [study.study_name for study in load_studies(storage, STUDY)] == [STUDY, f"{STUDY}.fresh"]
    with pytest.raises(UserError, match=f"Did you mean '{STUDY}'"):
        load_studies(storage, "tny")


def row(number: int, value: float, x: float, *, anchor: str = "", state: str = "complete") -> TrialRow:
    return TrialRow(number, number, state, anchor, {"x": x}, value, {0: value})


def test_the_best_different_points_and_the_default_are_candidates() -> None:
    rows = [
        row(0, 1.0, 0.0, anchor="default"),
        row(1, 5.0, 0.1),
        row(2, 4.0, 0.2),
        row(3, 4.0, 0.2),  # the same point again
        row(4, 3.0, 0.3),
        row(5, 9.0, 0.4, state="pruned"),
    ]
    assert [each.trial for each in choose(rows, 1)] == [1, 0]
    assert [each.trial for each in choose(rows, 3)] == [1, 2, 4, 0]
    assert [each.trial for each in choose(rows, 9)] == [1, 2, 4, 0]
    assert choose(rows[5:], 3) == []


def add(study: optuna.Study, state: TrialState, value: float | None, **attributes: Any) -> None:
    history = attributes.pop("retry_history", [])
    reports = {1: 0.5, 2: 0.75}
    study.add_trial(
        create_trial(
            state=state,
            value=value,
            user_attrs=attributes,
            system_attrs={"retry_history": history},
            intermediate_values=reports,
        )
    )


def test_rows_are_the_trials_that_count() -> None:
    study, fresh = optuna.create_study(direction="maximize"), optuna.create_study(direction="maximize")
    add(study, TrialState.FAIL, None)
    add(study, TrialState.RUNNING, None, point={"x": 1})
    add(study, TrialState.COMPLETE, 2.0, point={"x": 2}, seeds={"0": 1.0, "1": 3.0}, retry_history=[0])
    add(study, TrialState.WAITING, None)
    add(fresh, TrialState.RUNNING, None, candidate=0)
    outcome = read_outcome(study, fresh, top=1)
    running, complete = outcome.rows
    assert (running.trial, running.state, running.value) == (1, "running", 0.75)  # its last report
    assert (complete.trial, complete.first_number, complete.value) == (2, 0, 2.0)
    assert complete.seeds == {0: 1.0, 1: 3.0}
    assert outcome.candidates[0].fresh is None
    assert outcome.winner is None
    add(fresh, TrialState.COMPLETE, 1.5, candidate=0, retry_history=[0], seeds={"100": 1.5})
    winner = read_outcome(study, fresh, top=1).winner
    assert winner is not None
    assert (winner.searched.trial, winner.fresh_value) == (2, 1.5)
