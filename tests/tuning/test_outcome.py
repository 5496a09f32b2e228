"""Trials as rows, and the candidates for fresh seeds."""

from __future__ import annotations

from typing import Any

import optuna
from optuna.trial import TrialState, create_trial

from ccwm.studies.search import TrialRow
from ccwm.tuning.outcome import choose, read_outcome


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
