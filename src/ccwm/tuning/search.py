"""The search itself: begin or join a study, run trials until its budget is spent, then let fresh seeds decide."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import optuna
from filelock import FileLock
from optuna import Study
from optuna.storages import BaseStorage
from optuna.trial import Trial, TrialState

from ccwm.envs.gl import probe
from ccwm.envs.tasks import needs_gl
from ccwm.errors import UserError
from ccwm.settings.schema import Settings
from ccwm.tracking import ensure_store
from ccwm.tracking.git import git_state
from ccwm.training.finite import NotFinite
from ccwm.training.signals import interrupting_signals
from ccwm.tuning.board import Board
from ccwm.tuning.objective import Objective
from ccwm.tuning.outcome import POINT, Outcome, choose, read_outcome
from ccwm.tuning.publishing import publish
from ccwm.tuning.record import Record
from ccwm.tuning.sampling import make_pruner, make_sampler
from ccwm.tuning.space import Space, make_space, trial_settings
from ccwm.tuning.storage import lost_storage, shown_storage, study_folder, study_storage
from ccwm.tuning.study import ANCHOR, CANDIDATE, open_fresh_study, open_study
from ccwm.tuning.trial import Bench, Steps
from ccwm.tuning.workers import WORKER, Crew, RemoteCrew, give_back, standing

POLL_SECONDS = 1.0
HOUR = 3600.0


class NoTrial(UserError, RuntimeError):
    """Not one trial came to its end."""


def search(settings: Settings) -> Path:
    """Run the search of ``settings.tune`` to its end, alone or beside others, and return the folder of its results."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = make_space(settings)
    if needs_gl(settings.tune.task):
        probe()
    with interrupting_signals(), lost_storage(settings):
        storage = study_storage(settings)
        with _signed_in(settings) as crew:
            ensure_store()
            return Search(settings, space, storage, crew).run()


@contextmanager
def _signed_in(settings: Settings) -> Iterator[Crew | RemoteCrew]:
    tune = settings.tune
    crew = RemoteCrew(tune.heartbeat) if tune.storage else Crew(study_folder(tune.study))
    try:
        yield crew
    finally:
        crew.leave()


class Search:
    """One process's part in a study."""

    def __init__(self, settings: Settings, space: Space, storage: BaseStorage, crew: Crew | RemoteCrew) -> None:
        """Open the study, or refuse."""
        tune = settings.tune
        train = trial_settings(settings, {}).train
        steps = Steps(train.env_steps, train.evaluate_every)
        pruner = make_pruner(tune, first=train.evaluate_every, last=steps.end(len(tune.seeds) - 1))
        self.settings, self.space, self.crew, self.tune = settings, space, crew, tune
        with crew.gate():
            self.study = open_study(settings, space, storage, sampler=make_sampler(tune), pruner=pruner)
            self.fresh = open_fresh_study(self.study, storage)
        self.bench = Bench(settings, self.study.user_attrs["run"])
        self.deadline = time.monotonic() + tune.hours * HOUR if tune.hours is not None else None
        check = len(tune.fresh_seeds) / len(tune.seeds)
        self.board = Board(
            self.outcome, keys=list(space.parameters), trials=self._planned(), deadline=self.deadline, check=check
        )
        self.record = Record(self.bench)
        self.objective = Objective(
            space,
            study=self.study,
            fresh=self.fresh,
            bench=self.bench,
            board=self.board,
            record=self.record,
            outcome=self.outcome,
        )

    def _planned(self) -> int | None:
        """How many trials there will be, if that is known: a grid has no more than its points."""
        if self.tune.sampler != "grid":
            return self.tune.trials
        trials = self.study.get_trials(deepcopy=False)
        points = len(standing(trials)) + sum(trial.state == TrialState.WAITING for trial in trials)
        return min(points, self.tune.trials or points)

    def outcome(self) -> Outcome:
        """The study as it is now."""
        return read_outcome(self.study, self.fresh, top=self.tune.top)

    def run(self) -> Path:
        """Search, check the best on fresh seeds, publish."""
        began = time.monotonic()
        with ExitStack() as stack:
            self.record.begin(stack)
            stack.enter_context(self.board)
            self._greet()
            self._work_on(self.study, self.objective.searched, more=self._owes_trials)
            self._queue_candidates()
            self._work_on(self.fresh, self.objective.checked, more=lambda: False)
            self.record.begin(stack)  # whoever recorded the search may be gone
            return self._finish(began)

    def _work_on(self, study: Study, objective: Callable[[Trial], float], *, more: Callable[[], bool]) -> None:
        """Run queued trials and, while ``more`` says so, new ones; then wait until the others' are over too."""
        while True:
            with self.crew.gate():
                for number in self.crew.retry_dead(study):
                    self.board.note(f"trial {number}: its process is gone; it is begun again")
                if self._may_begin(study, more):
                    self._run_one(study, objective)
                    continue
            if not study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                return
            self.board.show("waiting for the trials of other processes")
            time.sleep(POLL_SECONDS)

    def _may_begin(self, study: Study, more: Callable[[], bool]) -> bool:
        queued = study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        if study is self.fresh:
            return bool(queued)
        return more() and (bool(queued) or self.tune.sampler != "grid")

    def _owes_trials(self) -> bool:
        if self.deadline is not None and time.monotonic() > self.deadline:
            return False
        return self.tune.trials is None or len(standing(self.study.get_trials(deepcopy=False))) < self.tune.trials

    def _run_one(self, study: Study, objective: Callable[[Trial], float]) -> None:
        """One trial; the gate is passed on as soon as the trial is known to be ours."""
        begun: list[int] = []

        def ours(trial: Trial) -> float:
            begun.append(trial.number)
            trial.set_user_attr(WORKER, self.crew.name)
            self.crew.pass_gate()
            trial.set_user_attr("commit", git_state()[0])
            return objective(trial)

        try:
            study.optimize(ours, n_trials=1, catch=(NotFinite,))
        except BaseException:  # a signal, a full disk: nothing that the point is to blame for
            for number in begun:
                give_back(study, number)
            raise

    def _queue_candidates(self) -> None:
        """Queue each of the best trials once for the fresh seeds."""
        with self.crew.gate():
            chosen = choose(self.outcome().rows, self.tune.top)
            if not chosen:
                raise NoTrial(
                    f"no trial of {self.tune.study!r} came to its end, so that there is no best one: "
                    f"`ccwm tune show` tells what became of them"
                )
            queued = {trial.user_attrs[CANDIDATE] for trial in self.fresh.get_trials(deepcopy=False)}
            for row in chosen:
                if row.root not in queued:
                    self.fresh.enqueue_trial(
                        self.space.params(row.point), user_attrs={CANDIDATE: row.root, POINT: row.point}
                    )

    def _finish(self, began: float) -> Path:
        """Write the results, say who won, and leave nothing behind that was not asked for."""
        outcome = self.outcome()
        winner = outcome.winner
        keep = {winner.searched.root} if winner and self.tune.keep != "none" else set()
        self.bench.keep_agents_of(keep)
        with FileLock(self.bench.folder / "publish.lock"):
            folder = publish(self.settings, self.space, self.study, outcome, run_id=self.bench.run_id, began=began)
        self.record.end(winner, folder)
        if winner and winner.fresh and winner.fresh.value is not None:
            shown_point = ", ".join(f"{key} = {value}" for key, value in winner.searched.point.items())
            self.board.note(
                f"winner: trial {winner.searched.number} ({shown_point}): {winner.searched.value:.4g} on the seeds of "
                f"the search, {winner.fresh.value:.4g} on fresh ones"
            )
        return folder

    def _greet(self) -> None:
        tune = self.tune
        budget = " and ".join(
            text
            for text in (
                f"{tune.trials} trials" if tune.trials else "",
                f"{tune.hours:g} hours" if tune.hours else "",
            )
            if text
        )
        self.board.note(
            f"study {tune.study!r} in {shown_storage(self.settings)}: "
            f"{', '.join(self.space.parameters)} on {tune.task}, {tune.sampler}, until {budget}"
        )
        for trial in self.study.get_trials(deepcopy=False)[:2]:
            for moved in trial.user_attrs.get("moved", []):
                self.board.note(f"the {trial.user_attrs[ANCHOR]} values are moved into the space: {moved}")
