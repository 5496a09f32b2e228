"""The search itself as an MLflow run, which one of the processes of a host writes."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from filelock import FileLock, Timeout

from ccwm.cells import settings_hash
from ccwm.tracking import Run, RunInfo
from ccwm.tuning.outcome import Candidate, Row
from ccwm.tuning.space import trial_settings
from ccwm.tuning.storage import shown_storage
from ccwm.tuning.study import identity
from ccwm.tuning.trial import Bench


class Record:
    """The search's run, while this process is the one that writes it."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._run: Run | None = None

    def begin(self, stack: ExitStack) -> None:
        """Write the run until ``stack`` ends, unless another process does or this one does already."""
        if self._run is not None:
            return
        lock = FileLock(self._bench.folder / "recorder.lock", thread_local=False)
        self._bench.folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return
        stack.callback(lock.release)
        settings, tune = self._bench.settings, self._bench.settings.tune
        info = RunInfo(
            "tune",
            tune.task,
            tune.variant,
            None,
            settings_hash(trial_settings(settings, {}), "train", task=tune.task, variant=tune.variant),
            title=f"tune {tune.study}",
            more_tags={"study": tune.study, "storage": shown_storage(settings)},
        )
        self._run = stack.enter_context(self._bench.run(info, dict(identity(settings)), run_id=self._bench.run_id))

    def trial(self, root: int, value: float, rows: list[Row]) -> None:
        """A whole trial's value, and the best so far."""
        if self._run is not None:
            earlier = [row.value for row in rows if row.state == "complete" and row.value is not None]
            self._run.log_metrics({"value": value, "best": max([value, *earlier])}, env_steps=root)

    def end(self, winner: Candidate | None, folder: Path) -> None:
        """Both numbers of the winner, and the results."""
        if self._run is not None:
            if winner and winner.fresh and winner.fresh.value is not None:
                self._run.log_metrics(
                    {"winner/search": winner.searched.value or 0.0, "winner/fresh": winner.fresh.value}, env_steps=0
                )
            self._run.log_artifact(folder)
