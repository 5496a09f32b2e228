"""Studies that are begun, joined, begun again after a death, and refused."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.pruners import NopPruner
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import TrialState
from tuning_project import ROOT, STUDY, make_settings

from ccwm.errors import UserError
from ccwm.settings.parsing import BadParams
from ccwm.tuning.study import ANCHOR, CANDIDATE, load_studies, open_fresh_study, open_study, queue_candidate
from ccwm.tuning.validation import make_space


@pytest.fixture(autouse=True)
def _presets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def open_tiny(storage: BaseStorage, **tune: Any) -> optuna.Study:
    settings = make_settings(**tune)
    return open_study(settings, make_space(settings), storage, sampler=RandomSampler(seed=0), pruner=NopPruner())


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
    assert "train.updates was 4, is now 7" in str(refused.value)
    assert "truncation.threshold" not in str(refused.value)  # searched, so that its default may change


def test_a_candidate_is_queued_once_for_the_fresh_seeds() -> None:
    storage = InMemoryStorage()
    settings = make_settings()
    fresh = open_fresh_study(open_tiny(storage), storage)
    point = {"truncation.threshold": 0.2, "truncation.window": 4, "truncation.lookback": 1}
    for _ in range(2):
        queue_candidate(fresh, make_space(settings), point, 7)
    (trial,) = fresh.trials
    assert trial.user_attrs[CANDIDATE] == 7
    assert make_space(settings).suggest(fresh.ask()) == point


def test_an_unknown_study_is_refused_with_the_known_ones() -> None:
    storage = InMemoryStorage()
    open_fresh_study(open_tiny(storage), storage)
    assert [study.study_name for study in load_studies(storage, STUDY)] == [STUDY, f"{STUDY}.fresh"]
    with pytest.raises(UserError, match=f"Did you mean '{STUDY}'"):
        load_studies(storage, "tny")
