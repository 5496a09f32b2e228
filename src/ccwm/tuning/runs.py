"""The MLflow runs of a search: its own, those of its trials below it, and those of their seeds below these."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from filelock import FileLock, Timeout
from optuna import TrialPruned
from pydantic import JsonValue

from ccwm.cells import Cell, settings_hash
from ccwm.settings.schema import Settings
from ccwm.tracking.run import Run, stage_run
from ccwm.training.finite import NotFinite
from ccwm.tuning.points import trial_settings
from ccwm.tuning.storage import shown_storage, study_folder
from ccwm.tuning.study import identity


class Runs:
    """Opens the runs; their ids follow from the search's, so that a retry resumes the runs of the attempt that died."""

    def __init__(self, settings: Settings, run_id: str) -> None:
        self.settings, self._id = settings, run_id
        self.search: Run | None = None
        """The search's own run, where this process writes it."""

    def begin_search(self, stack: ExitStack) -> None:
        """Write the search's run until ``stack`` ends, unless another process of this host or this one does already."""
        if self.search:
            return
        lock = FileLock(study_folder(self.settings.tune.study) / "recorder.lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return
        stack.callback(lock.release)
        settings, tags = trial_settings(self.settings, {}), {"storage": shown_storage(self.settings.tune)}
        self.search = stack.enter_context(self.open("tune", settings, {**identity(self.settings)}, tags=tags))

    @property
    def search_id(self) -> str:
        """MLflow's id of the search's run, or our own, which is accepted as well."""
        return self.search.run_id if self.search else self._id

    def log(self, metrics: Mapping[str, float | None], *, number: int = 0) -> None:
        """Metrics of the search's run, at the number of a trial."""
        if self.search:
            known = {name: value for name, value in metrics.items() if value is not None}
            self.search.log_metrics(known, env_steps=number)

    @contextmanager
    def open(
        self,
        stage: str,
        settings: Settings,
        params: dict[str, JsonValue],
        *,
        path: tuple[str, ...] = (),
        seed: int | None = None,
        tags: Mapping[str, str] = {},
    ) -> Iterator[Run]:
        """A run with its state as a tag; that of a pruned trial ends well.

        ``settings`` are those that are trained with; ``path`` leads here from the search's run: ("trial 3", "seed 0").
        """
        tune = self.settings.tune
        cell = Cell(stage, tune.task, tune.variant, seed)
        fingerprint = settings_hash(settings, cell.of("train"))
        pruned: TrialPruned | None = None
        with stage_run(
            cell,
            self.settings.tracking,
            settings=params,
            tags={"settings_hash": fingerprint, "study": tune.study, "state": "running", **tags},
            run_id=self._id_of(path),
            parent_run_id=self._id_of(path[:-1]) if path else None,
            title=" ".join([tune.study, *path]),
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

    def _id_of(self, path: tuple[str, ...]) -> str:
        return uuid.uuid5(uuid.UUID(self._id), "/".join(path)).hex if path else self._id
