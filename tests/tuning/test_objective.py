"""Several seeds a trial: reports at equal steps, pruning, and what a retry takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import optuna
import pytest
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import RandomSampler
from optuna.trial import TrialState
from tuning_project import make_settings

from ccwm.studies.search import Outcome
from ccwm.training.finite import NotFinite
from ccwm.tuning.objective import Objective, Steps
from ccwm.tuning.points import make_space
from ccwm.tuning.sampling import MedianAtStep
from ccwm.tuning.study import read_outcome


def test_steps_of_several_seeds_are_one_rising_line() -> None:
    steps = Steps(env_steps=1000, every=300)
    assert steps.span == 1200
    assert [steps.evaluation(0, at) for at in (40, 299, 300, 999, 1060)] == [0, 0, 300, 900, 900]
    assert steps.end(0) == 1200
    assert steps.evaluation(1, 320) == 1500
    assert steps.end(1) == 2400
    exact = Steps(env_steps=900, every=300)  # the end must stand behind an evaluation at 900
    assert exact.evaluation(0, 900) == 900
    assert exact.end(0) == 1200


class FakeRuns:
    """Runs that only remember."""

    def __init__(self) -> None:
        self.metrics: list[tuple[str, float, int]] = []
        self.trials: list[tuple[int, float, float]] = []

    @contextmanager
    def open(self, *_: Any, **__: Any) -> Iterator[FakeRuns]:
        yield self

    def log_metrics(self, metrics: dict[str, float], *, env_steps: int) -> None:
        self.metrics += [(name, value, env_steps) for name, value in metrics.items()]

    def log(self, metrics: dict[str, float], *, number: int) -> None:
        self.trials.append((number, metrics["value"], metrics["best"]))


class FakeRunner:
    """Trains a seed in no time: its curve rises to ``height`` (of a seed) at 40, 80, 120 and 160 steps."""

    def __init__(self, heights: dict[int, float]) -> None:
        self.settings, self.runs, self.heights = make_settings(measure="final"), FakeRuns(), heights
        self.trained: list[int] = []

    def train_seed(self, attempt: Any, seed: int, *, report: Callable[..., None], show: Any) -> float:
        self.trained.append(seed)
        if self.heights[seed] < 0:
            raise NotFinite("the loss is NaN")
        for part in (1, 2, 3, 4):
            value = self.heights[seed] * part / 4
            report([{"env_steps": 40 * part, "updates": part, "return_mean": value}])
        return self.heights[seed]

    def clear(self, number: int) -> None:
        """Nothing to remove."""

    def keep_agents_of(self, numbers: set[int]) -> None:
        """Nothing to remove."""


class Silent:
    """A table that shows nothing."""

    def show(self, now: str) -> None:
        """Ignore."""

    def note(self, event: str) -> None:
        """Ignore."""


def make_objective(
    heights: dict[int, float], *, study: optuna.Study | None = None, pruner: BasePruner | None = None
) -> tuple[optuna.Study, Objective]:
    study = study or optuna.create_study(
        direction="maximize", sampler=RandomSampler(seed=0), pruner=pruner or NopPruner()
    )
    runner: Any = FakeRunner(heights)

    def outcome() -> Outcome:
        return read_outcome(study, optuna.create_study(), top=1)

    table: Any = Silent()
    return study, Objective(make_space(runner.settings), runner, table, outcome)


def test_a_value_is_the_mean_over_seeds_and_so_is_every_report() -> None:
    study, objective = make_objective({0: 4.0, 1: 8.0})
    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    assert trial.value == 6.0
    assert trial.user_attrs["seeds"] == {"0": 4.0, "1": 8.0}
    # Seed 0 takes the steps to 200; with the second seed, a report is the mean of 4 and what that has reached.
    assert trial.intermediate_values == {40: 1, 80: 2, 120: 3, 160: 4, 200: 4, 240: 3, 280: 4, 320: 5, 360: 6, 400: 6}
    runs: Any = objective.runner.runs
    assert ("objective", 6.0, 400) in runs.metrics
    assert runs.trials == [(0, 6.0, 6.0)]


def test_a_retry_takes_over_the_finished_seeds_and_their_reports() -> None:
    study, objective = make_objective({0: -1.0, 1: 8.0})  # seed 0 could not be trained again
    study.add_trial(
        optuna.create_trial(
            state=TrialState.WAITING,
            user_attrs={"seeds": {"0": 4.0}},
            system_attrs={"retry_history": [7]},
            intermediate_values={40: 1.0, 200: 4.0, 240: 3.0},
        )
    )
    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    runner: Any = objective.runner
    assert runner.trained == [1]
    assert trial.value == 6.0
    assert trial.intermediate_values == {40: 1, 200: 4, 240: 3, 280: 4, 320: 5, 360: 6, 400: 6}
    assert runner.runs.trials == [(7, 6.0, 6.0)]  # under the number of the first attempt


def test_a_hopeless_trial_is_pruned_in_its_second_seed_and_an_anchor_is_not() -> None:
    study, good = make_objective({0: 8.0, 1: 8.0}, pruner=MedianAtStep(startup=1))
    study.optimize(good, n_trials=1)
    _, bad = make_objective({0: 9.0, 1: 1.0}, study=study)
    study.optimize(bad, n_trials=1)
    pruned = study.trials[1]
    assert pruned.state == TrialState.PRUNED
    assert pruned.last_step == 240  # ahead in the first seed, behind at the first evaluation of the second
    study.enqueue_trial({}, user_attrs={"anchor": "default"})
    study.optimize(bad, n_trials=1)
    assert study.trials[2].value == 5.0


def test_a_loss_that_is_not_finite_fails_the_trial() -> None:
    study, objective = make_objective({0: 1.0, 1: -1.0})
    study.optimize(objective, n_trials=1, catch=(NotFinite,))
    (trial,) = study.trials
    assert trial.state == TrialState.FAIL
    with pytest.raises(NotFinite):
        study.optimize(objective, n_trials=1)
