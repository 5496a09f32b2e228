"""What a trial is worth: the mean over its seeds, each trained in turn, unless the pruner ends it before."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import optuna
from optuna import Study
from optuna.trial import Trial

from ccwm.training.finite import NotFinite
from ccwm.tuning.board import Board
from ccwm.tuning.outcome import POINT, SEEDS, Outcome, choose
from ccwm.tuning.record import Record
from ccwm.tuning.space import Space, trial_settings
from ccwm.tuning.study import ANCHOR, CANDIDATE
from ccwm.tuning.trial import Bench, Pruned, Steps
from ccwm.tuning.workers import root_number, standing


class Objective:
    """What Optuna calls with a trial: ``searched`` on the seeds of the search, ``checked`` on fresh ones."""

    def __init__(
        self,
        space: Space,
        *,
        study: Study,
        fresh: Study,
        bench: Bench,
        board: Board,
        record: Record,
        outcome: Callable[[], Outcome],
    ) -> None:
        """``outcome`` reads both studies as they are when it is called."""
        self.settings, self.tune, self.space = bench.settings, bench.settings.tune, space
        self.study, self.fresh, self.outcome = study, fresh, outcome
        self.bench, self.board, self.record = bench, board, record

    def searched(self, trial: Trial) -> float:
        """The mean over the search's seeds."""
        point = self.space.suggest(trial)
        trial.set_user_attr(POINT, point)
        anchored = ANCHOR in trial.user_attrs
        return self._train(trial, point, self.tune.seeds, fresh=False, prunable=not anchored)

    def checked(self, trial: Trial) -> float:
        """The mean over the fresh seeds, of a candidate that no other process has."""
        mine, candidate = trial.number, trial.user_attrs[CANDIDATE]
        earlier = (each for each in standing(self.fresh.get_trials(deepcopy=False)) if each.number < mine)
        if any(each.user_attrs[CANDIDATE] == candidate for each in earlier):
            raise optuna.TrialPruned("another process queued the same candidate at the same moment")
        return self._train(trial, trial.user_attrs[POINT], self.tune.fresh_seeds, fresh=True, prunable=False)

    def _train(self, trial: Trial, point: dict[str, object], seeds: list[int], *, fresh: bool, prunable: bool) -> float:
        """Train every seed, report the mean over those seen so far, and end early if the pruner says so."""
        frozen = (self.fresh if fresh else self.study).get_trials(deepcopy=False)[trial.number]
        root = trial.user_attrs[CANDIDATE] if fresh else root_number(frozen)
        label = f"trial {trial.number}{f' (trial {root} on fresh seeds)' if fresh else ''}"
        known: dict[str, dict[str, object]] = dict(trial.user_attrs.get(SEEDS, {}))  # of an attempt that died
        values: list[float] = []
        with self.bench.trial_run(root, point, fresh=fresh) as run:
            state = "interrupted"

            def report(step: int, value: float, *, judged: bool = True) -> None:
                mean = statistics.fmean([*values, value])
                trial.report(mean, step)
                run.log_metrics({"objective": mean}, env_steps=step)
                if judged and prunable and step < last and trial.should_prune():
                    raise Pruned

            train = trial_settings(self.settings, point).train
            last = Steps(train.env_steps, train.evaluate_every).end(len(seeds) - 1)
            try:
                for index, seed in enumerate(seeds):
                    if str(seed) in known:
                        for step, value in known[str(seed)]["reports"]:  # type: ignore[attr-defined]
                            report(step, value, judged=False)
                    else:
                        result = self.bench.train_seed(
                            point,
                            seed,
                            index,
                            root=root,
                            fresh=fresh,
                            report=report,
                            show=lambda text: self.board.show(f"{label}, {text}"),
                        )
                        known[str(seed)] = result._asdict()
                        trial.set_user_attr(SEEDS, known)
                    values.append(float(known[str(seed)]["value"]))  # type: ignore[arg-type]
                state = "complete"
            except Pruned:
                state = "pruned"
            except NotFinite as error:
                state = "failed"
                self.board.note(f"{label} failed: {error}")
                self.bench.clear(root)
                raise
            finally:
                run.set_tags({"state": state})
            if values:
                run.log_metrics({"value": statistics.fmean(values)}, env_steps=last)
        return self._ended(label, root, values, state, fresh=fresh)

    def _ended(self, label: str, root: int, values: list[float], state: str, *, fresh: bool) -> float:
        """Tidy up after a trial, tell of it, and return its value."""
        self.bench.clear(root)
        rows = self.outcome().rows
        best = choose(rows, self.tune.top)
        self.bench.keep_agents_of({row.root for row in (*best, *rows) if row in best or row.state == "running"})
        if state == "pruned":
            self.board.note(f"{label} pruned after {len(values)} whole seeds")
            raise optuna.TrialPruned
        mean = statistics.fmean(values)
        self.board.note(f"{label}: {self.tune.measure} {mean:.4g}")
        if not fresh:
            self.record.trial(root, mean, rows)
        return mean
