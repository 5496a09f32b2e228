"""Begin a study or join it: the same settings under the same name, the default and the paper's values first."""

from __future__ import annotations

import random
import time
import uuid
from contextlib import suppress
from typing import Any, NamedTuple

import optuna
from optuna import Study
from optuna.exceptions import DuplicatedStudyError
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from ccwm.cells import stage_values
from ccwm.seeds import named_seed
from ccwm.settings.parsing import BadParams
from ccwm.settings.schema import Settings
from ccwm.tracking.run import flat_params
from ccwm.tuning.space import Point, Space, default_point, paper_point, trial_settings

FREE = {"trials", "hours", "top", "storage", "heartbeat", "keep", "study"}
"""Fields of ``tune`` that a study may be continued with other values of."""
ANCHOR, CANDIDATE = "anchor", "candidate"
"""Attributes of a trial: whose values it has (`default`, `paper`), and which trial it checks on fresh seeds."""
READY_SECONDS = 20.0


class Anchor(NamedTuple):
    """A point that every study begins with."""

    name: str
    point: Point
    moved: list[str]


def anchors(settings: Settings, space: Space) -> list[Anchor]:
    """The default settings and the paper's values; one anchor where they are the same point."""
    default = Anchor("default", *default_point(settings, space))
    paper = Anchor("paper", *paper_point(settings, space))
    if default.point == paper.point:
        return [Anchor("default, paper", default.point, [*default.moved, *paper.moved])]
    return [default, paper]


def identity(settings: Settings) -> dict[str, str]:
    """What must not change while a study goes on: what trials read but the searched keys, and how they are judged."""
    base = trial_settings(settings, {})
    values: dict[str, Any] = {**stage_values(base, "train"), **stage_values(base, "collect")}
    values["tune"] = settings.tune.model_dump(mode="json", exclude=FREE)
    for key in settings.tune.space:
        section, _, field = key.partition(".")
        values[section] = {name: value for name, value in values[section].items() if name != field}
    return dict(flat_params(values))


def open_study(
    settings: Settings, space: Space, storage: BaseStorage, *, sampler: BaseSampler, pruner: BasePruner
) -> Study:
    """The study of ``tune.study``, begun if there is none; BadParams where it was begun with other settings."""
    name = settings.tune.study
    study, begun = _create_or_load(storage, name, sampler=sampler, pruner=pruner)
    if begun:
        _fill(study, settings, space)
    deadline = time.monotonic() + READY_SECONDS
    while "run" not in study.user_attrs:
        if time.monotonic() > deadline:  # whoever began it has died over it
            _fill(study, settings, space)
        time.sleep(0.1)
    _refuse_other_settings(study, settings)
    return study


def open_fresh_study(study: Study, storage: BaseStorage) -> Study:
    """The study of the same name whose trials are the best ones, trained on fresh seeds."""
    return _create_or_load(storage, f"{study.study_name}.fresh", sampler=RandomSampler(seed=0), pruner=NopPruner())[0]


def load_studies(storage: BaseStorage, name: str) -> tuple[Study, Study | None]:
    """A study and its fresh one, to be looked at; BadParams where there is none of this name."""
    names = optuna.get_all_study_names(storage)
    if name not in names:
        known = [each for each in names if not each.endswith(".fresh")]
        listed = f" Known: {', '.join(known)}." if known else ""
        raise BadParams(f"no study is called {name!r}: `ccwm tune` begins one.{listed}")
    fresh = f"{name}.fresh"
    return (
        optuna.load_study(study_name=name, storage=storage),
        optuna.load_study(study_name=fresh, storage=storage) if fresh in names else None,
    )


def _create_or_load(storage: BaseStorage, name: str, *, sampler: BaseSampler, pruner: BasePruner) -> tuple[Study, bool]:
    if name not in optuna.get_all_study_names(storage):  # even a vain attempt would leave a line in a journal
        with suppress(DuplicatedStudyError):
            return optuna.create_study(
                storage=storage, study_name=name, direction="maximize", sampler=sampler, pruner=pruner
            ), True
    return optuna.load_study(study_name=name, storage=storage, sampler=sampler, pruner=pruner), False


def _fill(study: Study, settings: Settings, space: Space) -> None:
    """Write down the settings and queue the anchors and, for a grid, its points in an order that mixes them."""
    study.set_user_attr("settings", identity(settings))
    queued = [trial.user_attrs.get(ANCHOR) for trial in study.get_trials(states=(TrialState.WAITING,))]
    first = anchors(settings, space)
    for anchor in first:
        if anchor.name not in queued:
            attributes = {ANCHOR: anchor.name, "moved": anchor.moved}
            study.enqueue_trial(space.params(anchor.point), user_attrs=attributes)
    if settings.tune.sampler == "grid":
        points = [point for point in space.grid(settings.tune.grid) if point not in [each.point for each in first]]
        random.Random(named_seed("tune", study.study_name)).shuffle(points)
        for point in points:
            study.enqueue_trial(space.params(point))
    study.set_user_attr("run", uuid.uuid4().hex)


def _refuse_other_settings(study: Study, settings: Settings) -> None:
    then, now = study.user_attrs["settings"], identity(settings)
    changed = [
        f"{key} was {then.get(key, 'not there')}, is now {now.get(key, 'not there')}"
        for key in sorted(then.keys() | now.keys())
        if then.get(key) != now.get(key)
    ]
    if changed:
        raise BadParams(
            "\n  ".join(
                [
                    f"tune.study: the study {study.study_name!r} was begun with other settings; go on with those, or "
                    f"give this search another name (`tune.study`, `ccwm tune --study NAME`):",
                    *changed,
                ]
            )
        )
