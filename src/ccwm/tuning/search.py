"""The search itself: begin or join a study, run trials until its budget is spent, then let fresh seeds decide."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from pathlib import Path

import optuna
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import Trial, TrialState

from ccwm.envs.gl import probe
from ccwm.envs.tasks import needs_gl
from ccwm.errors import UserError
from ccwm.settings.schema import Settings
from ccwm.studies.search import Outcome
from ccwm.tracking.git import git_state
from ccwm.tracking.store import ensure_store
from ccwm.training.finite import NotFinite
from ccwm.training.signals import interrupting_signals
from ccwm.tuning.live_table import LiveTable
from ccwm.tuning.objective import Objective, steps_of
from ccwm.tuning.outcome import COMMIT, read_outcome
from ccwm.tuning.publishing import publish
from ccwm.tuning.runs import Runs
from ccwm.tuning.sampling import make_pruner, make_sampler
from ccwm.tuning.space import Space
from ccwm.tuning.storage import open_storage, shown_storage, storage_errors, study_folder, study_lock
from ccwm.tuning.study import ANCHOR, MOVED, RUN, open_fresh_study, open_study, queue_candidate
from ccwm.tuning.trial_runner import TrialRunner
from ccwm.tuning.validation import make_space
from ccwm.tuning.workers import Workers, counted, given_back

POLL_SECONDS = 1.0
HOUR = 3600.0


def search(settings: Settings) -> Path:
    """Run the search of ``settings.tune`` to its end, alone or beside others, and return the folder of its results."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    tune, space = settings.tune, make_space(settings)
    if needs_gl(tune.task):
        probe()
    with interrupting_signals(), storage_errors(tune):
        storage = open_storage(tune)
        heartbeat = storage.record_heartbeat if isinstance(storage, RDBStorage) else None
        workers = Workers(study_folder(tune.study), study_lock(tune), heartbeat)
        with workers.signed_in():
            ensure_store()
            return Search(settings, space, storage, workers).run()


class Search:
    """One process's part in a study."""

    def __init__(self, settings: Settings, space: Space, storage: BaseStorage, workers: Workers) -> None:
        """Open the study, or refuse."""
        self.settings, self.space, self.workers, self.tune = settings, space, workers, settings.tune
        with workers.lock:
            steps = steps_of(settings)
            pruner = make_pruner(self.tune, first=steps.every, last=steps.end(len(self.tune.seeds) - 1))
            self.study = open_study(settings, space, storage, sampler=make_sampler(self.tune), pruner=pruner)
            self.fresh = open_fresh_study(self.study, storage)
        self.deadline = time.monotonic() + self.tune.hours * HOUR if self.tune.hours is not None else None
        trials = self.tune.trials if self.tune.sampler != "grid" else len(self.study.trials)
        self.table = LiveTable(self.outcome, keys=list(space.parameters), trials=trials, deadline=self.deadline)
        self.runs = Runs(settings, self.study.user_attrs[RUN])
        self.runner = TrialRunner(settings, self.runs)

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
            self._work_on(fresh=False)
            self._queue_candidates()
            self._work_on(fresh=True)
            self.runs.begin_search(stack)  # the process that wrote the search's run may be gone
            return self._finish(began)

    def _work_on(self, *, fresh: bool) -> None:
        """Run trials as long as there are some to begin, then wait until those of the others are over too."""
        study = self.fresh if fresh else self.study
        objective = Objective(study, self.space, self.runner, self.table, self.outcome, fresh=fresh)

        def run_trial(trial: Trial) -> float:
            self.workers.own(trial)
            with given_back(study, trial, blamed=(NotFinite,)):
                trial.set_user_attr(COMMIT, git_state()[0])
                return objective(trial)

        while True:
            with self.workers.lock:
                for number in self.workers.retry_dead(study):
                    self.table.note(f"trial {number}: its process is gone; it is retried")
                if self._may_begin(fresh=fresh):
                    study.optimize(run_trial, n_trials=1, catch=(NotFinite,))
                    continue
            if not study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                return
            self.table.show("waiting for the trials of other processes")
            time.sleep(POLL_SECONDS)

    def _may_begin(self, *, fresh: bool) -> bool:
        """Whether a trial is queued or, in the search, owed; a search ends at its budget whatever is queued."""
        study = self.fresh if fresh else self.study
        queued = bool(study.get_trials(deepcopy=False, states=(TrialState.WAITING,)))
        if fresh:
            return queued
        late = self.deadline is not None and time.monotonic() > self.deadline
        spent = self.tune.trials is not None and len(counted(study.get_trials(deepcopy=False))) >= self.tune.trials
        return not late and not spent and (queued or self.tune.sampler != "grid")

    def _queue_candidates(self) -> None:
        """Queue each of the best trials once for the fresh seeds."""
        with self.workers.lock:
            candidates = self.outcome().candidates
            for each in candidates:
                queue_candidate(self.fresh, self.space, each.searched.point, each.searched.first_number)
        if not candidates:
            raise UserError(
                f"no trial of {self.tune.study!r} is complete, so that there is no best one",
                hint="`ccwm tune show` lists what became of them",
            )

    def _finish(self, began: float) -> Path:
        """Write the results, name the winner, and keep no agent that was not asked for."""
        outcome = self.outcome()
        winner = outcome.winner
        self.runner.keep_agents_of({winner.searched.first_number} if winner else set())
        folder = publish(self.settings, self.space, self.study, outcome, run_id=self.runs.search_id, began=began)
        self.runs.log_files(folder)
        if winner:
            self.runs.log({"winner/search": winner.searched.value, "winner/fresh": winner.fresh_value})
            point = ", ".join(f"{key} = {value}" for key, value in winner.searched.point.items())
            self.table.note(
                f"winner: trial {winner.searched.trial} ({point}): {winner.searched.value:.4g} on the seeds of the "
                f"search, {winner.fresh_value:.4g} on fresh ones"
            )
        return folder

    def _greet(self) -> None:
        tune, keys = self.tune, ", ".join(self.space.parameters)
        self.table.note(f"study {tune.study!r} in {shown_storage(tune)}: {keys} on {tune.task}, {tune.sampler}")
        for trial in self.study.get_trials(deepcopy=False)[:2]:
            for moved in trial.user_attrs.get(MOVED, []):
                self.table.note(f"the {trial.user_attrs[ANCHOR]} values are moved into the space: {moved}")
