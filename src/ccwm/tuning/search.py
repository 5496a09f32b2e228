"""The search itself: begin or join a study, run trials until its budget is spent, then let fresh seeds decide."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import optuna
from filelock import FileLock, Timeout
from optuna import Study
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage
from optuna.trial import Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from ccwm.config import Settings
from ccwm.envs.gl import probe
from ccwm.envs.tasks import needs_gl
from ccwm.params import settings_hash
from ccwm.refusal import Refusal
from ccwm.stage import WORK
from ccwm.tracking import Run, RunInfo, ensure_store, stage_run
from ccwm.tracking.git import git_state
from ccwm.training.finite import NotFinite
from ccwm.training.signals import interrupting_signals
from ccwm.tuning.board import Board
from ccwm.tuning.outcome import POINT, SEEDS, Outcome, choose, read_outcome
from ccwm.tuning.publishing import publish
from ccwm.tuning.sampling import make_pruner, make_sampler
from ccwm.tuning.space import Space, make_space, trial_settings
from ccwm.tuning.storage import StorageAway, open_storage, shown
from ccwm.tuning.study import ANCHOR, CANDIDATE, identity, open_fresh_study, open_study
from ccwm.tuning.trial import Bench, Pruned, Steps, study_folder
from ccwm.tuning.workers import WORKER, Crew, RemoteCrew, give_back, root_number, standing

POLL_SECONDS = 1.0
HOUR = 3600.0


class NoTrial(Refusal, RuntimeError):
    """Not one trial came to its end."""


def journal_path(study: str) -> Path:
    """The journal of a study that needs no database."""
    return study_folder(study) / "journal.jsonl"


def study_storage(settings: Settings) -> BaseStorage:
    """The storage that the settings name."""
    tune = settings.tune
    return open_storage(tune.storage, journal_path(tune.study), heartbeat=tune.heartbeat)


def search(settings: Settings) -> Path:
    """Run the search of ``settings.tune`` to its end, alone or beside others, and return the folder of its results."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = make_space(settings)
    if needs_gl(settings.tune.task):
        probe()
    with interrupting_signals(), _lost_storage(settings):
        storage = study_storage(settings)
        with _signed_in(settings) as crew:
            ensure_store()
            return Search(settings, space, storage, crew).run()


@contextmanager
def _lost_storage(settings: Settings) -> Iterator[None]:
    """Within, a storage that goes away is told in a sentence."""
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        place = shown(settings.tune.storage, journal_path(settings.tune.study))
        raise StorageAway(
            f"tune.storage: {place} went away ({' '.join(str(error.__cause__ or error).split())[:200]}); when it is "
            f"back, run the same command again: the trial that was running goes on"
        ) from None


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
        self.run_of_search: Run | None = None

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
            self._record_search(stack)
            stack.enter_context(self.board)
            self._greet()
            self._work_on(self.study, self._objective, more=self._owes_trials)
            self._queue_candidates()
            self._work_on(self.fresh, self._check, more=lambda: False)
            if self.run_of_search is None:  # whoever recorded the search may be gone
                self._record_search(stack)
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

    def _objective(self, trial: Trial) -> float:
        """The mean over the search's seeds."""
        point = self.space.suggest(trial)
        trial.set_user_attr(POINT, point)
        anchored = ANCHOR in trial.user_attrs
        return self._train(trial, point, self.tune.seeds, fresh=False, prunable=not anchored)

    def _check(self, trial: Trial) -> float:
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
        if self.run_of_search is not None and not fresh:
            earlier = [row.value for row in rows if row.state == "complete" and row.value is not None]
            self.run_of_search.log_metrics({"value": mean, "best": max([mean, *earlier])}, env_steps=root)
        return mean

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
        if self.run_of_search is not None:
            if winner and winner.fresh and winner.fresh.value is not None:
                self.run_of_search.log_metrics(
                    {"winner/search": winner.searched.value or 0.0, "winner/fresh": winner.fresh.value}, env_steps=0
                )
            self.run_of_search.log_artifact(folder)
        if winner and winner.fresh and winner.fresh.value is not None:
            shown_point = ", ".join(f"{key} = {value}" for key, value in winner.searched.point.items())
            self.board.note(
                f"winner: trial {winner.searched.number} ({shown_point}): {winner.searched.value:.4g} on the seeds of "
                f"the search, {winner.fresh.value:.4g} on fresh ones"
            )
        return folder

    def _record_search(self, stack: ExitStack) -> None:
        """Record the search as an MLflow run, in one of the processes of a host."""
        lock = FileLock(self.bench.folder / "recorder.lock", thread_local=False)
        self.bench.folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return
        stack.callback(lock.release)
        tune, tracking = self.tune, self.settings.tracking
        info = RunInfo(
            "tune",
            tune.task,
            tune.variant,
            None,
            settings_hash(trial_settings(self.settings, {}), "train", task=tune.task, variant=tune.variant),
            title=f"tune {tune.study}",
            more_tags={"study": tune.study, "storage": shown(tune.storage, journal_path(tune.study))},
        )
        self.run_of_search = stack.enter_context(
            stage_run(
                info,
                settings=dict(identity(self.settings)),
                experiment=tracking.experiment,
                timeout=tracking.timeout,
                spool=WORK / "spool",
                run_id=self.bench.run_id,
            )
        )

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
            f"study {tune.study!r} in {shown(tune.storage, journal_path(tune.study))}: "
            f"{', '.join(self.space.parameters)} on {tune.task}, {tune.sampler}, until {budget}"
        )
        for trial in self.study.get_trials(deepcopy=False)[:2]:
            for moved in trial.user_attrs.get("moved", []):
                self.board.note(f"the {trial.user_attrs[ANCHOR]} values are moved into the space: {moved}")
