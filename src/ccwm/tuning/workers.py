"""The processes of one study: which are alive, whose trials are retried, and which trials count."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout
from optuna import Study, TrialPruned
from optuna.storages import RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, Trial, TrialState

from ccwm.training.finite import NotFinite
from ccwm.tuning.storage import DatabaseLock, experimental

RETRIES = 5
"""How often a trial whose process was killed is begun again, before it counts as failed: it may be what kills them."""
WORKER, INTERRUPTED, ERROR = "worker", "interrupted", "error"
"""Attributes of a trial: the process that runs it, how often it was given back, and why it failed for good."""


def retry_history(trial: FrozenTrial) -> list[int]:
    """Numbers of the attempts that this trial is a retry of, the first one first; Optuna keeps them."""
    return list(trial.system_attrs.get("retry_history", []))


def first_number(trial: FrozenTrial) -> int:
    """The number of a trial's first attempt; a retry finds its checkpoints and its MLflow run by it."""
    return [*retry_history(trial), trial.number][0]


def counted(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that count: begun, and not retried under another number."""
    listed = list(trials)
    retried = {number for trial in listed for number in retry_history(trial)}
    return [trial for trial in listed if trial.state != TrialState.WAITING and trial.number not in retried]


class Workers:
    """This process among those that share a study.

    Trials begin under ``lock``, one process at a time, so that their number is exact and a running trial without a
    worker is a dead one's. Optuna's heartbeats, which a database has and a journal has not, tell who is alive on
    several hosts; beside a journal each process holds a file lock, which the kernel frees when the process dies.
    """

    def __init__(
        self, folder: Path, lock: BaseFileLock | DatabaseLock, heartbeat: Callable[[int], None] | None = None
    ) -> None:
        """``heartbeat`` records one in a storage that has them."""
        self.lock, self.name = lock, uuid.uuid4().hex
        self._folder, self._heartbeat = folder / "workers", heartbeat

    @contextmanager
    def signed_in(self) -> Iterator[None]:
        """Within, this process counts as alive."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self.name}.lock"
        try:
            with FileLock(path, thread_local=False):
                yield
        finally:
            path.unlink(missing_ok=True)

    @contextmanager
    def running(self, trial: Trial) -> Iterator[None]:
        """Mark a trial that was just begun under the lock as this process's, and let the next process begin one.

        Within, what is not the trial's own fault (a signal, a full disk) leaves it to be retried, as often as needed.
        """
        if self._heartbeat is not None:
            self._heartbeat(trial._trial_id)  # Optuna's thread may not have come to its first one
        trial.set_user_attr(WORKER, self.name)
        self.lock.release()
        try:
            yield
        except TrialPruned:
            raise
        except NotFinite as error:
            trial.set_user_attr(ERROR, str(error))
            raise
        except BaseException as error:
            trial.set_user_attr(INTERRUPTED, trial.user_attrs.get(INTERRUPTED, 0) + 1)
            if isinstance(error, SystemExit):  # Optuna ends the trials of all other exceptions itself
                trial.study.tell(trial, state=TrialState.FAIL)
            raise

    def retry_dead(self, study: Study) -> list[int]:
        """Queue the trials of dead processes again and return their numbers; the lock must be held.

        A trial that failed without an error of its own and has no retry yet is queued, so that a process that dies
        between these two writes loses nothing and doubles nothing.
        """
        with experimental():
            fail_stale_trials(study)
            retry = RetryHeartbeatStaleTrialCallback(inherit_intermediate_values=True)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            worker = trial.user_attrs.get(WORKER)
            if worker is None or (self._heartbeat is None and not self._is_alive(worker)):
                study.tell(trial.number, state=TrialState.FAIL)
        queued = []
        for trial in counted(study.get_trials()):
            killed = len(retry_history(trial)) - trial.user_attrs.get(INTERRUPTED, 0)
            if trial.state == TrialState.FAIL and ERROR not in trial.user_attrs and killed < RETRIES:
                trial.user_attrs.pop(WORKER, None)  # the retry is nobody's until it is begun
                retry(study, trial)
                queued.append(trial.number)
        return queued

    def _is_alive(self, name: str) -> bool:
        path = self._folder / f"{name}.lock"
        if name == self.name or not path.exists():
            return name == self.name
        try:
            with FileLock(path, timeout=0, thread_local=False):
                path.unlink(missing_ok=True)
                return False
        except Timeout:
            return True
