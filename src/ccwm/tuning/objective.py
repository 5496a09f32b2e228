"""What a trial is worth: the mean over its seeds, each trained in turn, unless the pruner ends it before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from optuna import TrialPruned
from optuna.trial import Trial

from ccwm.settings.schema import Settings
from ccwm.studies.search import Outcome
from ccwm.tracking.run import Run
from ccwm.training.finite import NotFinite
from ccwm.training.history import Row
from ccwm.tuning.live_table import LiveTable
from ccwm.tuning.measures import measure_curve
from ccwm.tuning.points import nested, trial_settings
from ccwm.tuning.space import Space
from ccwm.tuning.study import ANCHOR, CANDIDATE, POINT, SEEDS
from ccwm.tuning.trial_runner import Attempt, TrialRunner
from ccwm.tuning.workers import first_number


@dataclass(frozen=True)
class Steps:
    """Environment steps of several seeds as one line, the same for every trial, so that values can be compared.

    Seed number i takes the steps i · span … (i + 1) · span. An evaluation stands at the multiple of ``every`` that its
    environment steps have reached, however many frames the episodes before it happened to take; a seed's end stands at
    the end of its span.
    """

    env_steps: int
    every: int

    @property
    def span(self) -> int:
        """Steps that a seed takes: beyond the last multiple that an evaluation can reach."""
        return (self.env_steps // self.every + 1) * self.every

    def evaluation(self, index: int, env_steps: float) -> int:
        """Where an evaluation of seed number ``index`` stands."""
        reached = min(int(env_steps), self.env_steps) // self.every
        return index * self.span + reached * self.every

    def end(self, index: int) -> int:
        """Where the end of seed number ``index`` stands."""
        return (index + 1) * self.span


def steps_of(settings: Settings) -> Steps:
    """The steps of a search's trials."""
    train = trial_settings(settings, {}).train
    return Steps(train.env_steps, train.evaluate_every)


@dataclass(frozen=True)
class Objective:
    """What Optuna calls with a trial, be it of the search or of a candidate on fresh seeds."""

    space: Space
    runner: TrialRunner
    table: LiveTable
    outcome: Callable[[], Outcome]
    """Reads the search as it is when it is called."""

    def __call__(self, trial: Trial) -> float:
        """The mean over all seeds; TrialPruned where the pruner ends the trial, NotFinite where training fails."""
        frozen = trial.study.get_trials(deepcopy=False)[trial.number]
        if CANDIDATE in trial.user_attrs:
            attempt = Attempt(trial.user_attrs[POINT], trial.user_attrs[CANDIDATE], fresh=True)
        else:
            attempt = Attempt(self.space.suggest(trial), first_number(frozen), fresh=False)
            trial.set_user_attr(POINT, attempt.point)
        runs, settings = self.runner.runs, trial_settings(self.runner.settings, attempt.point)
        tags = {"trial": str(attempt.number), "seeds": "fresh" if attempt.fresh else "search"}
        try:
            with runs.open("tune-trial", settings, nested(attempt.point), path=(attempt.name,), tags=tags) as run:
                mean = self._train(trial, attempt, run, reported=set(frozen.intermediate_values))
        except (TrialPruned, NotFinite) as error:
            self._end(attempt, f"failed: {error}" if isinstance(error, NotFinite) else "pruned")
            raise
        best = self._end(attempt, f"{settings.tune.measure} {mean:.4g}").best
        if not attempt.fresh:
            earlier = best.value if best and best.value is not None else mean
            runs.log({"value": mean, "best": max(mean, earlier)}, number=attempt.number)
        return mean

    def _train(self, trial: Trial, attempt: Attempt, run: Run, reported: set[int]) -> float:
        """Train the seeds that no earlier attempt has finished, and report what none has ``reported``.

        A report is the mean over the finished seeds and the current one so far.
        """
        tune, steps = self.runner.settings.tune, steps_of(self.runner.settings)
        seeds = tune.fresh_seeds if attempt.fresh else tune.seeds
        prunable, last = not attempt.fresh and ANCHOR not in trial.user_attrs, steps.end(len(seeds) - 1)
        values: dict[str, float] = dict(trial.user_attrs.get(SEEDS, {}))
        finished: list[float] = []

        def report(step: int, value: float) -> None:
            if step in reported:
                return
            reported.add(step)
            mean = fmean([*finished, value])
            trial.report(mean, step)
            run.log_metrics({"objective": mean}, env_steps=step)
            if prunable and step < last and trial.should_prune():
                raise TrialPruned

        def report_curve(curve: list[Row]) -> None:
            if (value := measure_curve(tune.measure, curve)) is not None:
                report(steps.evaluation(len(finished), curve[-1]["env_steps"]), value)

        for index, seed in enumerate(seeds):
            if str(seed) not in values:
                values[str(seed)] = self.runner.train_seed(attempt, seed, report=report_curve, show=self.table.show)
                trial.set_user_attr(SEEDS, values)
            report(steps.end(index), values[str(seed)])
            finished.append(values[str(seed)])
        run.log_metrics({"value": fmean(finished)}, env_steps=last)
        return fmean(finished)

    def _end(self, attempt: Attempt, ending: str) -> Outcome:
        """Show how a trial ended, and remove what it does not need any more."""
        self.runner.clear(attempt.number)
        self.table.note(f"{attempt.name}: {ending}")
        outcome = self.outcome()
        running = {row.first_number for row in outcome.rows if row.state == "running"}
        self.runner.keep_agents_of(running | {each.searched.first_number for each in outcome.candidates})
        return outcome
