"""The search itself: begin or join a study, run trials until its budget is spent, then let fresh seeds decide."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from pathlib import Path

import optuna
from optuna import Study
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import Trial, TrialState

from ccwm.envs.gl import probe
from ccwm.envs.tasks import needs_gl
from ccwm.errors import UserError
from ccwm.settings.schema import Settings
from ccwm.studies.search import Outcome
from ccwm.tracking.git import git_state
from ccwm.tracking.store import connect
from ccwm.training.finite import NotFinite
from ccwm.training.signals import interrupting_signals
from ccwm.tuning.live_table import LiveTable
from ccwm.tuning.objective import Objective, steps_of
from ccwm.tuning.points import make_space
from ccwm.tuning.publishing import publish
from ccwm.tuning.runs import Runs
from ccwm.tuning.sampling import make_pruner, next_sampler
from ccwm.tuning.space import Space
from ccwm.tuning.storage import open_storage, shown_storage, storage_errors, study_folder, study_lock
from ccwm.tuning.study import ANCHOR, COMMIT, MOVED, RUN, open_fresh_study, open_study, queue_candidates, read_outcome
from ccwm.tuning.trial_runner import TrialRunner
from ccwm.tuning.workers import Workers, counted

POLL_SECONDS = 1.0
HOUR = 3600.0


def search(settings: Settings) -> Path:
    """Run the search of ``settings.tune`` to its end, alone or beside others, and return the folder of its results."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    tune, space = settings.tune, make_space(settings)
    if needs_gl(tune.task, settings.env):
        probe()
    with interrupting_signals(), storage_errors(tune):
        storage = open_storage(tune)
        heartbeat = storage.record_heartbeat if isinstance(storage, RDBStorage) else None
        workers = Workers(study_folder(tune.study), study_lock(tune), heartbeat)
        with workers.signed_in():
            connect()
            return Search(settings, space, storage, workers).run()


class Search:
    """One process's part in a study."""

    def __init__(self, settings: Settings, space: Space, storage: BaseStorage, workers: Workers) -> None:
        """Open the study, or refuse."""
        self.settings, self.space, self.workers, self.tune = settings, space, workers, settings.tune
        with workers.lock:
            self.study = open_study(settings, space, storage)
            self.fresh = open_fresh_study(self.study, storage)
        steps = steps_of(settings)
        self.study.pruner = make_pruner(self.tune, first=steps.every, last=steps.end(len(self.tune.seeds) - 1))
        self.deadline = time.monotonic() + self.tune.hours * HOUR if self.tune.hours is not None else None
        trials = self.tune.trials if self.tune.sampler != "grid" else len(self.study.trials)
        self.table = LiveTable(self.outcome, keys=list(space.parameters), trials=trials, deadline=self.deadline)
        self.runs = Runs(settings, self.study.user_attrs[RUN])
        self.runner = TrialRunner(settings, self.runs)
        self.objective = Objective(space, self.runner, self.table, self.outcome)

    def outcome(self) -> Outcome:
        """The study as it is now."""
        return read_outcome(self.study, self.fresh, top=self.tune.top)

    def run(self) -> Path:
        """Search, check the best on fresh seeds, publish."""
        began = time.monotonic()
        with ExitStack() as stack:
            self.runs.begin_search(stack)
            stack.enter_context(self.table)
            self._greet()
            self._work_on(self.study)
            with self.workers.lock:
                candidates = self.outcome().candidates
                queue_candidates(self.fresh, self.space, candidates)
            if not candidates:
                message = f"no trial of {self.tune.study!r} is complete, so that there is no best one"
                raise UserError(message, hint="`ccwm tune show` lists what became of them")
            self._work_on(self.fresh)
            self.runs.begin_search(stack)  # the process that wrote the search's run may be gone
            return self._finish(began)

    def _work_on(self, study: Study) -> None:
        """Run trials as long as there are some to begin, then wait until those of the others are over too."""
        while True:
            with self.workers.lock:
                for number in self.workers.retry_dead(study):
                    self.table.note(f"trial {number}: its process is gone; it is retried")
                if self._may_begin(study):
                    study.sampler = next_sampler(study, self.tune)
                    study.optimize(self._run_trial, n_trials=1, catch=(NotFinite,))
                    continue
            if not study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                return
            self.table.show("waiting for the trials of other processes")
            time.sleep(POLL_SECONDS)

    def _run_trial(self, trial: Trial) -> float:
        with self.workers.running(trial):
            trial.set_user_attr(COMMIT, git_state()[0])
            return self.objective(trial)

    def _may_begin(self, study: Study) -> bool:
        """Whether a trial is queued or, in the search, owed; a search ends at its budget whatever is queued."""
        queued = bool(study.get_trials(deepcopy=False, states=(TrialState.WAITING,)))
        if study is self.fresh:
            return queued
        late = self.deadline is not None and time.monotonic() > self.deadline
        spent = self.tune.trials is not None and len(counted(study.get_trials(deepcopy=False))) >= self.tune.trials
        return not late and not spent and (queued or self.tune.sampler != "grid")

    def _finish(self, began: float) -> Path:
        """Write the results, name the winner, and keep no agent that was not asked for."""
        outcome = self.outcome()
        winner = outcome.winner
        self.runner.keep_agents_of({winner.searched.first_number} if winner else set())
        folder = publish(self.settings, self.space, self.study, outcome, run_id=self.runs.search_id, began=began)
        if self.runs.search:
            self.runs.search.log_artifact(folder)
        if winner:
            trial, fresh = winner.searched, winner.fresh_value
            self.runs.log({"winner/search": trial.value, "winner/fresh": fresh})
            point = ", ".join(f"{key} = {value}" for key, value in trial.point.items())
            values = f"{trial.value:.4g} on the seeds of the search, {fresh:.4g} on fresh ones"
            self.table.note(f"winner: trial {trial.trial} ({point}): {values}")
        return folder

    def _greet(self) -> None:
        tune, keys = self.tune, ", ".join(self.space.parameters)
        self.table.note(f"study {tune.study!r} in {shown_storage(tune)}: {keys} on {tune.task}, {tune.sampler}")
        for trial in self.study.get_trials(deepcopy=False)[:2]:
            for moved in trial.user_attrs.get(MOVED, []):
                self.table.note(f"the {trial.user_attrs[ANCHOR]} values are moved into the space: {moved}")
