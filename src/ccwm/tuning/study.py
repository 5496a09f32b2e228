"""Begin a study or join it: the same settings under the same name, the default and the paper's values first."""

from __future__ import annotations

import random
import uuid
from typing import Any

import optuna
from optuna import Study
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import BaseStorage

from ccwm.cells import stage_values
from ccwm.errors import UserError, did_you_mean
from ccwm.seeds import named_seed
from ccwm.settings.parsing import BadParams
from ccwm.settings.schema import Settings
from ccwm.tracking.run import flat_params
from ccwm.tuning.points import anchors, trial_settings
from ccwm.tuning.space import Point, Space

FREE = {"trials", "hours", "top", "storage", "heartbeat", "keep", "study"}
"""Fields of ``tune`` that a study may be resumed with other values of."""
ANCHOR, MOVED, CANDIDATE, POINT = "anchor", "moved", "candidate", "point"
"""Attributes of a trial: whose values it has (`default`, `paper`), which of them were moved into the space, which trial
it checks on fresh seeds, and its point by key."""
SETTINGS, RUN = "settings", "run"
"""Attributes of a study: what it was begun with, and the id of its MLflow run, which is written last."""


def identity(settings: Settings) -> dict[str, str]:
    """What must not change in a study: all that trials read but the searched keys, and how they are judged."""
    base = trial_settings(settings, {})
    values: dict[str, Any] = {**stage_values(base, "train"), **stage_values(base, "collect")}
    values["tune"] = settings.tune.model_dump(mode="json", exclude=FREE)
    for key in settings.tune.space:
        section, _, field = key.partition(".")
        del values[section][field]
    return dict(flat_params(values))


def open_study(
    settings: Settings, space: Space, storage: BaseStorage, *, sampler: BaseSampler, pruner: BasePruner
) -> Study:
    """The study of ``tune.study``, begun if there is none; BadParams where it was begun with other settings.

    The study's lock must be held; one whose first process died while it began is begun again.
    """
    study = _open(storage, settings.tune.study, sampler=sampler, pruner=pruner)
    if RUN not in study.user_attrs:
        _begin(study, settings, space)
    _refuse_other_settings(study, settings)
    return study


def open_fresh_study(study: Study, storage: BaseStorage) -> Study:
    """The study of the same name whose trials are the best ones, trained on fresh seeds."""
    return _open(storage, _fresh_name(study.study_name), sampler=RandomSampler(seed=0), pruner=NopPruner())


def load_studies(storage: BaseStorage, name: str) -> tuple[Study, Study]:
    """A study and its fresh one, to be read; UserError where there is none of this name."""
    names = optuna.get_all_study_names(storage)
    if not {name, _fresh_name(name)} <= set(names):
        known = [each for each in names if _fresh_name(each) in names]
        raise UserError(f"no study is called {name!r}", hint=f"`ccwm tune` begins one.{did_you_mean(name, known)}")
    study, fresh = (optuna.load_study(study_name=each, storage=storage) for each in (name, _fresh_name(name)))
    return study, fresh


def queue_candidate(fresh: Study, space: Space, point: Point, number: int) -> None:
    """Queue a point of the search for the fresh seeds, once."""
    if number not in (trial.user_attrs[CANDIDATE] for trial in fresh.get_trials(deepcopy=False)):
        fresh.enqueue_trial(space.params(point), user_attrs={CANDIDATE: number, POINT: point})


def _fresh_name(name: str) -> str:
    return f"{name}.fresh"


def _open(storage: BaseStorage, name: str, *, sampler: BaseSampler, pruner: BasePruner) -> Study:
    if name in optuna.get_all_study_names(storage):  # even a vain attempt to create it would leave a line in a journal
        return optuna.load_study(study_name=name, storage=storage, sampler=sampler, pruner=pruner)
    return optuna.create_study(
        storage=storage, study_name=name, direction="maximize", sampler=sampler, pruner=pruner, load_if_exists=True
    )


def _begin(study: Study, settings: Settings, space: Space) -> None:
    """Write the settings, and queue the anchors and, for a grid, its points in an order that mixes them."""
    study.set_user_attr(SETTINGS, identity(settings))
    for anchor in anchors(settings, space):
        attributes = {ANCHOR: anchor.name, MOVED: anchor.moved}
        study.enqueue_trial(space.params(anchor.point), user_attrs=attributes, skip_if_exists=True)
    if settings.tune.sampler == "grid":  # Optuna's GridSampler knows no constraints and no budget
        points = space.grid(settings.tune.grid)
        random.Random(named_seed("tune", study.study_name)).shuffle(points)
        for point in points:
            study.enqueue_trial(space.params(point), skip_if_exists=True)
    study.set_user_attr(RUN, uuid.uuid4().hex)


def _refuse_other_settings(study: Study, settings: Settings) -> None:
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
