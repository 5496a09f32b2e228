"""What a study has come to: its trials as rows, and the best of them with their values on fresh seeds."""

from __future__ import annotations

from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from ccwm.studies.search import Candidate, Outcome, TrialRow
from ccwm.tuning.study import ANCHOR, CANDIDATE, POINT
from ccwm.tuning.workers import counted, first_number

SEEDS, COMMIT = "seeds", "commit"
"""Attributes of a trial: the values of its finished seeds, and the code that trained it."""
STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}


def read_outcome(study: Study, fresh: Study, *, top: int) -> Outcome:
    """The study's rows and candidates as they are now."""
    rows = [_row(trial) for trial in counted(study.get_trials(deepcopy=False))]
    checked = {
        trial.user_attrs[CANDIDATE]: _row(trial)
        for trial in counted(fresh.get_trials(deepcopy=False))
        if trial.state.is_finished()
    }
    return Outcome(rows, [Candidate(row, checked.get(row.first_number)) for row in choose(rows, top)])


def choose(rows: list[TrialRow], top: int) -> list[TrialRow]:
    """The ``top`` best complete trials with different points, and the one with the default settings."""
    complete = [row for row in rows if row.state == "complete"]
    ranked = sorted(complete, key=lambda row: (-(row.value or 0.0), row.first_number))
    different = [row for at, row in enumerate(ranked) if row.point not in [other.point for other in ranked[:at]]]
    return different[:top] + [row for row in different[top:] if "default" in row.anchor]


def _row(trial: FrozenTrial) -> TrialRow:
    attributes: dict[str, Any] = trial.user_attrs
    last = trial.intermediate_values.get(trial.last_step) if trial.last_step is not None else None
    return TrialRow(
        trial=trial.number,
        first_number=first_number(trial),
        state=STATES.get(trial.state, "running"),
        anchor=attributes.get(ANCHOR, ""),
        point=attributes.get(POINT, {}),
        value=trial.value if trial.state.is_finished() else last,
        seeds={int(seed): value for seed, value in attributes.get(SEEDS, {}).items()},
        seconds=trial.duration.total_seconds() if trial.duration else None,
        commit=attributes.get(COMMIT, ""),
    )
