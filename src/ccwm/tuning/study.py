"""A study: begun or joined, with the default and the paper's values first, and read as rows and candidates."""

from __future__ import annotations

import random
import uuid
from typing import Any

import optuna
from optuna import Study
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from ccwm.cells import stage_values
from ccwm.errors import UserError, did_you_mean
from ccwm.seeds import named_seed
from ccwm.settings.parsing import BadParams
from ccwm.settings.schema import Settings
from ccwm.studies.search import Candidate, Outcome, TrialRow
from ccwm.tracking.run import flat_params
from ccwm.tuning.points import anchors, trial_settings
from ccwm.tuning.space import Space
from ccwm.tuning.workers import counted, first_number

FREE = {"trials", "hours", "top", "storage", "heartbeat", "keep", "study"}
"""Fields of ``tune`` that a study may be resumed with other values of."""
ANCHOR, MOVED, CANDIDATE, POINT = "anchor", "moved", "candidate", "point"
"""Attributes of a trial: whose values it has (`default`, `paper`), which of them were moved into the space, which trial
it checks on fresh seeds, and its point by key."""
SEEDS, COMMIT = "seeds", "commit"
"""Attributes of a trial: the values of its finished seeds, and the code that trained it."""
SETTINGS, RUN = "settings", "run"
"""Attributes of a study: what it was begun with, and the id of its MLflow run, which is written last."""
STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}


def identity(settings: Settings) -> dict[str, str]:
    """What must not change in a study: all that trials read but the searched keys, and how they are judged."""
    base = trial_settings(settings, {})
    values = {**stage_values(base, "train"), **stage_values(base, "collect")}
    values["tune"] = settings.tune.model_dump(mode="json", exclude=FREE)
    return {key: value for key, value in flat_params(values) if key not in settings.tune.space}


def open_study(settings: Settings, space: Space, storage: BaseStorage) -> Study:
    """The study of ``tune.study``, begun if there is none; BadParams where it was begun with other settings.

    The study's lock must be held; one whose first process died while it began is begun again.
    """
    study = _open(storage, settings.tune.study)
    if RUN not in study.user_attrs:
        _begin(study, settings, space)
    then, now = study.user_attrs[SETTINGS], identity(settings)
    changed = [
        f"{key} was {then.get(key, 'not there')}, is now {now.get(key, 'not there')}"
        for key in sorted(then.keys() | now.keys())
        if then.get(key) != now.get(key)
    ]
    if changed:
        head = (
            f"tune.study: the study {study.study_name!r} was begun with other settings; resume it with those, or "
            f"give this search another name (`tune.study`, `ccwm tune --study NAME`):"
        )
        raise BadParams("\n  ".join([head, *changed]))
    return study


def open_fresh_study(study: Study, storage: BaseStorage) -> Study:
    """The study of the same name whose trials are the best ones, trained on fresh seeds; nothing there is drawn."""
    return _open(storage, f"{study.study_name}.fresh")


def load_studies(storage: BaseStorage, name: str) -> tuple[Study, Study]:
    """A study and its fresh one, to be read; UserError where there is none of this name."""
    names = optuna.get_all_study_names(storage)
    known = [each for each in names if f"{each}.fresh" in names]
    if name not in known:
        raise UserError(f"no study is called {name!r}", hint=f"`ccwm tune` begins one.{did_you_mean(name, known)}")
    return _open(storage, name), _open(storage, f"{name}.fresh")


def queue_candidates(fresh: Study, space: Space, candidates: list[Candidate]) -> None:
    """Queue each of the best trials of a search for the fresh seeds, once; the lock must be held."""
    queued = {trial.user_attrs[CANDIDATE] for trial in fresh.get_trials(deepcopy=False)}
    for row in (each.searched for each in candidates if each.searched.first_number not in queued):
        fresh.enqueue_trial(space.params(row.point), user_attrs={CANDIDATE: row.first_number, POINT: row.point})


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


def _open(storage: BaseStorage, name: str) -> Study:
    if name in optuna.get_all_study_names(storage):  # even a vain attempt to create it would leave a line in a journal
        return optuna.load_study(study_name=name, storage=storage)
    return optuna.create_study(storage=storage, study_name=name, direction="maximize", load_if_exists=True)


def _begin(study: Study, settings: Settings, space: Space) -> None:
    """Write the settings, and queue the anchors and, for a grid, its points in an order that mixes them."""
    study.set_user_attr(SETTINGS, identity(settings))
    for name, (point, moved) in anchors(settings, space).items():
        study.enqueue_trial(space.params(point), user_attrs={ANCHOR: name, MOVED: moved}, skip_if_exists=True)
    if settings.tune.sampler == "grid":  # Optuna's GridSampler knows no constraints and no budget
        points = space.grid(settings.tune.grid)
        random.Random(named_seed("tune", study.study_name)).shuffle(points)
        for point in points:
            study.enqueue_trial(space.params(point), skip_if_exists=True)
    study.set_user_attr(RUN, uuid.uuid4().hex)


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
