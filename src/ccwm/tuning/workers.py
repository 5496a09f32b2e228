"""The processes that work on one study: who is alive, whose trial is to be begun again, and what counts."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from filelock import FileLock, Timeout
from optuna import Study
from optuna.exceptions import ExperimentalWarning
from optuna.storages import RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from ccwm.tuning.storage import MISSED, RETRIES

WORKER = "worker"
"""A trial's attribute: the process that runs it."""


def history(trial: FrozenTrial) -> list[int]:
    """Numbers of the dead trials that this one is a retry of, the first one first."""
    return list(trial.system_attrs.get("retry_history", []))


def root_number(trial: FrozenTrial) -> int:
    """The number under which a trial was first begun; a retry keeps it, and so finds its checkpoints and its run."""
    return [*history(trial), trial.number][0]


def standing(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that count: begun, and not begun again under another number."""
    listed = list(trials)
    retried = {number for trial in listed for number in history(trial)}
    return [trial for trial in listed if trial.state != TrialState.WAITING and trial.number not in retried]


class Crew:
    """This process among those on its host that share a journal: each holds a lock that the kernel frees at its death.

    Trials are begun one process at a time (``gate``), so that the number of trials is exact and a trial without a
    process is a dead one's.
    """

    def __init__(self, folder: Path) -> None:
        """Sign in."""
        self._folder = folder / "workers"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.name = uuid.uuid4().hex
        self._presence = FileLock(self._folder / f"{self.name}.lock", thread_local=False)
        self._presence.acquire()
        self._gate = FileLock(folder / "gate.lock", thread_local=False)

    def leave(self) -> None:
        """Sign out."""
        self._presence.release()
        Path(self._presence.lock_file).unlink(missing_ok=True)

    @contextmanager
    def gate(self) -> Iterator[None]:
        """Hold the right to begin trials; ``pass_gate`` gives it back early."""
        self._gate.acquire()
        try:
            yield
        finally:
            self.pass_gate()

    def pass_gate(self) -> None:
        """Let the next process begin a trial."""
        if self._gate.is_locked:
            self._gate.release()

    def retry_dead(self, study: Study) -> list[int]:
        """Queue the trials of processes that are gone; returns their numbers. The gate must be held."""
        trials = study.get_trials()
        queued = {number for trial in trials for number in history(trial)}
        dead = [
            trial
            for trial in trials
            if trial.state == TrialState.RUNNING and not self._alive(trial.user_attrs.get(WORKER))
        ]
        for trial in dead:
            # The retry first: if we die between the two, the next process finds it and does not queue another.
            if trial.number not in queued:
                queue_retry(study, trial)
            study.tell(trial.number, state=TrialState.FAIL)
        return [trial.number for trial in dead]

    def _alive(self, name: str | None) -> bool:
        if name is None:
            return False
        if name == self.name:
            return True
        path = self._folder / f"{name}.lock"
        if not path.exists():
            return False
        probe = FileLock(path, thread_local=False)
        try:
            probe.acquire(timeout=0)
        except Timeout:
            return True
        probe.release()
        path.unlink(missing_ok=True)
        return False


class RemoteCrew:
    """Processes on several hosts that share a database, which remembers their signs of life."""

    def __init__(self, heartbeat: int) -> None:
        self.name = uuid.uuid4().hex
        self._grace = timedelta(seconds=MISSED * heartbeat)

    def leave(self) -> None:
        """Nothing to give back."""

    @contextmanager
    def gate(self) -> Iterator[None]:
        """Hosts do not wait for each other: at the very end one trial more than asked may be begun on each."""
        yield

    def pass_gate(self) -> None:
        """Nothing is held."""

    def retry_dead(self, study: Study) -> list[int]:
        """Queue the trials whose process has given no sign of life; returns their numbers."""
        before = {trial.number for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            fail_stale_trials(study)
        # Killed between its creation and its first heartbeat, a trial would be waited for for ever.
        for trial in study.get_trials(states=(TrialState.RUNNING,)):
            begun = trial.datetime_start
            if WORKER not in trial.user_attrs and begun and datetime.now(begun.tzinfo) - begun > self._grace:
                queue_retry(study, trial)
                study.tell(trial.number, state=TrialState.FAIL)
        after = {trial.number for trial in study.get_trials(deepcopy=False, states=(TrialState.FAIL,))}
        return sorted(before & after)


def give_back(study: Study, number: int) -> None:
    """Queue our own trial again, which we cannot end; the next process goes on with it."""
    trial = study.get_trials()[number]
    if trial.state in (TrialState.RUNNING, TrialState.FAIL):
        queue_retry(study, trial, most=None)
    if trial.state == TrialState.RUNNING:
        study.tell(number, state=TrialState.FAIL)


def queue_retry(study: Study, trial: FrozenTrial, *, most: int | None = RETRIES) -> None:
    """Queue the same point again, unless it has been begun more often than ``most`` times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        RetryHeartbeatStaleTrialCallback(max_retry=most)(study, trial)
