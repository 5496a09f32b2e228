"""How points are proposed and trials pruned."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState, create_trial
from tuning_project import make_settings

from ccwm.tuning.sampling import MedianAtStep, make_pruner, next_sampler


def objective(trial: optuna.Trial) -> float:
    return -((trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2)


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_restarted_process_proposes_new_points_and_a_repeated_search_the_same(sampler: str) -> None:
    tune = make_settings(sampler=sampler).tune

    def search(restarts: int) -> list[float]:
        storage = optuna.storages.InMemoryStorage()
        optuna.create_study(storage=storage, study_name="restarted", direction="maximize")
        for _ in range(restarts):  # each one is a process that begins with the same settings
            study = optuna.load_study(study_name="restarted", storage=storage)
            for _ in range(12 // restarts):
                study.sampler = next_sampler(study, tune)
                study.optimize(objective, n_trials=1)
        return [trial.params["x"] for trial in study.trials]

    assert len(set(search(6))) == 12
    assert search(6) == search(1)


def finished(value: float, reports: dict[int, float]) -> optuna.trial.FrozenTrial:
    return create_trial(
        value=value, intermediate_values=reports, params={"x": 0.5}, distributions={"x": FloatDistribution(0, 1)}
    )


def running(study: optuna.Study, reports: dict[int, float]) -> bool:
    trial = study.ask()
    for step, value in reports.items():
        trial.report(value, step)
    pruned = trial.should_prune()
    study.tell(trial, state=TrialState.FAIL)
    return pruned


def test_the_median_prunes_by_the_value_at_this_step() -> None:
    study = optuna.create_study(direction="maximize", pruner=MedianAtStep(startup=3))
    # Two seeds: steps 1 and 2 are the first one's, at step 3 the second has begun low and pulls the mean down.
    study.add_trials([finished(8, {1: 4, 2: 8, 3: 5}), finished(6, {1: 3, 2: 6, 3: 4})])
    assert not running(study, {1: 0.0})  # two trials are fewer than three
    study.add_trial(finished(4, {1: 2, 2: 4, 3: 3}))
    assert running(study, {1: 2.9})  # the median of 4, 3, 2 is 3
    assert not running(study, {1: 3.0})
    # Its best so far, 7, is above the median of 4 at step 3; its value there is not, and that is what counts.
    assert running(study, {1: 5.0, 2: 7.0, 3: 3.5})
    assert not running(study, {1: 0.5, 2: 0.5, 3: 9.0})
    assert not running(study, {99: 0.0})  # nobody has been there


@pytest.mark.parametrize("pruner", ["hyperband", "none"])
def test_the_other_pruners_judge_trials_too(pruner: str) -> None:
    tune = make_settings(pruner=pruner).tune
    study = optuna.create_study(
        study_name="judged",
        direction="maximize",
        pruner=make_pruner(tune, first=40, last=400),
        sampler=RandomSampler(seed=0),
    )

    def rising(trial: optuna.Trial) -> float:
        height: Any = trial.suggest_float("x", 0.0, 1.0)
        for step in range(40, 401, 40):
            trial.report(height * step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(height * 400)

    study.optimize(rising, n_trials=20)
    states = [trial.state for trial in study.trials]
    assert TrialState.COMPLETE in states
    assert (TrialState.PRUNED in states) == (pruner == "hyperband")
