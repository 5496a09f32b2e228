"""The MLflow runs of a search: its own, those of its trials below it, and those of their seeds below these."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from optuna import TrialPruned
from pydantic import JsonValue

from ccwm.cells import WORK, Cell, settings_hash
from ccwm.settings.schema import Settings
from ccwm.tracking.run import Run, stage_run
from ccwm.training.finite import NotFinite
from ccwm.tuning.points import trial_settings
from ccwm.tuning.space import Point
from ccwm.tuning.storage import shown_storage, study_folder
from ccwm.tuning.study import identity


class Runs:
    """Opens the runs; their ids follow from the search's, so that a retry resumes the runs of the attempt that died."""

    def __init__(self, settings: Settings, run_id: str) -> None:
        self.settings, self.run_id = settings, run_id
        self._search: Run | None = None

    def begin_search(self, stack: ExitStack) -> None:
        """Write the search's run until ``stack`` ends, unless another process of this host or this one does already."""
        if self._search is not None:
            return
        lock = FileLock(study_folder(self.settings.tune.study) / "recorder.lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return
        stack.callback(lock.release)
        tags = {"storage": shown_storage(self.settings.tune)}
        self._search = stack.enter_context(self.open("tune", {**identity(self.settings)}, tags=tags))

    @property
    def search_id(self) -> str:
        """MLflow's id of the search's run, or our own, which is accepted as well."""
        return self._search.run_id if self._search is not None else self.run_id

    def log(self, metrics: Mapping[str, float | None], *, number: int = 0) -> None:
        """Metrics of the search's run, at the number of a trial."""
        if self._search is not None:
            known = {name: value for name, value in metrics.items() if value is not None}
            self._search.log_metrics(known, env_steps=number)

    def log_files(self, folder: Path) -> None:
        """The results, on the search's run."""
        if self._search is not None:
            self._search.log_artifact(folder)

    @contextmanager
    def open(
        self,
        stage: str,
        params: dict[str, JsonValue],
        *,
        point: Point | None = None,
        path: tuple[str, ...] = (),
        seed: int | None = None,
        tags: Mapping[str, str] = {},
    ) -> Iterator[Run]:
        """A run with its state as a tag; that of a pruned trial ends well.

        ``path`` leads to it from the search's run: ("trial 3", "seed 0").
        """
        tune, tracking = self.settings.tune, self.settings.tracking
        cell = Cell(stage, tune.task, tune.variant, seed)
        pruned: TrialPruned | None = None
        with stage_run(
            cell,
            settings=params,
            settings_hash=settings_hash(trial_settings(self.settings, point or {}), cell.of("train")),
            experiment=tracking.experiment,
            timeout=tracking.timeout,
            spool=WORK / "spool",
            parent_run_id=self._id(path[:-1]) if path else None,
            run_id=self._id(path),
            title=" ".join([tune.study, *path]),
            tags={"study": tune.study, "state": "running", **tags},
        ) as run:
            state = "interrupted"
            try:
                yield run
                state = "complete"
            except TrialPruned as error:
                pruned, state = error, "pruned"
            except NotFinite:
                state = "failed"
                raise
            finally:
                run.set_tags({"state": state})
        if pruned is not None:
            raise pruned

    def _id(self, path: tuple[str, ...]) -> str:
        return uuid.uuid5(uuid.UUID(self.run_id), "/".join(path)).hex if path else self.run_id
