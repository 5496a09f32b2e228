"""What every pipeline stage shares: arguments, settings, paths, signals, the MLflow run and its record."""

from __future__ import annotations

import argparse
import json
import logging
import resource
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from ccwm.config import Settings
from ccwm.envs.gl import probe
from ccwm.envs.tasks import check_task, needs_gl
from ccwm.files import write_atomically, write_json
from ccwm.machine import machine
from ccwm.params import STAGES, for_stage, load_settings, resolve, settings_hash, stage_values
from ccwm.tracking import Run, RunInfo, ensure_store, stage_run, tracking_uri
from ccwm.tracking.git import git_state
from ccwm.training.signals import Interrupted, interrupting_signals

PARAMS = Path("params.yaml")
WORK = Path(".work")


@dataclass(frozen=True)
class Item:
    """One entry of a stage's matrix; a stage that does not know variants has none."""

    stage: str
    task: str = ""
    variant: str = ""
    seed: int = 0

    @property
    def key(self) -> Path:
        """The part of a path that tells entries apart: task/variant/seed."""
        return Path(*(part for part in (self.task, self.variant, str(self.seed)) if part))

    @property
    def data(self) -> Path:
        """The random episodes, shared by all variants of a task and seed."""
        return Path("data") / self.task / str(self.seed)

    @property
    def model(self) -> Path:
        """The trained agent."""
        return Path("models") / self.key

    @property
    def results(self) -> Path:
        """What this stage measured; the report, made of all results, lies outside them."""
        return Path("report") if self.stage == "report" else self.results_of(self.stage)

    def results_of(self, stage: str) -> Path:
        """What another stage measured of the same entry."""
        return Path("results") / stage / self.key

    @property
    def random_results(self) -> Path:
        """What the collect stage measured of the random policy."""
        return Path("results") / "collect" / self.task / str(self.seed)


@dataclass
class Stage:
    """An open stage: its entry, just the settings that it declares, its run, and what it cost."""

    item: Item
    settings: Settings
    fingerprint: str
    run: Run
    cost: dict[str, JsonValue] = field(default_factory=dict)


def parse_item(stage: str, *, variants: bool = True) -> Item:
    """Read --task, --variant and --seed from the command line."""
    parser = argparse.ArgumentParser(description=f"Stage {stage} of the pipeline, for one entry of its matrix.")
    parser.add_argument("--task", required=True, help="a world's name, as in study.tasks")
    if variants:
        parser.add_argument("--variant", required=True, help="a name of variants")
    parser.add_argument("--seed", type=int, required=True, help="as in study.seeds")
    given = parser.parse_args()
    return Item(stage, given.task, getattr(given, "variant", ""), given.seed)


def stage_settings(item: Item, *, renders: bool = True) -> Settings:
    """The whole file checked, a variant's overrides applied, the task known, GL there: before anything is written."""
    settings = load_settings(PARAMS)
    if item.variant:
        settings = resolve(settings, item.variant)
    for task in [item.task] if item.task else settings.study.tasks:
        check_task(task)
    if renders and needs_gl(item.task):
        probe()
    return settings


@contextmanager
def open_stage(item: Item, *, renders: bool = True, work: Path | None = None) -> Iterator[Stage]:
    """Open a stage: settings checked, signals caught, a run begun; its record is written at the end.

    ``work`` is a directory that outlives a killed stage; the run's id is kept there, so that a resumed stage stays
    one run.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    settings = stage_settings(item, renders=renders)
    fingerprint = settings_hash(settings, item.stage, task=item.task, variant=item.variant, seed=item.seed)
    info = RunInfo(item.stage, item.task, item.variant, item.seed if item.task else None, fingerprint)
    began = time.monotonic()
    with _interruptible(work):
        ensure_store()
        with stage_run(
            info,
            settings=stage_values(settings, item.stage),
            experiment=settings.tracking.experiment,
            timeout=settings.tracking.timeout,
            spool=WORK / "spool",
            parent_run_id=_training_run(item),
            run_id=_run_id(work),
        ) as run:
            stage = Stage(item, for_stage(settings, item.stage), fingerprint, run)
            yield stage
            stage.cost = {
                "seconds": round(time.monotonic() - began, 3),
                "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
                **stage.cost,
            }
            write_record(stage, settings)


def write_record(stage: Stage, settings: Settings) -> None:
    """Put ``run.json`` beside the results: which run made them, from which code, at what cost."""
    path = stage.item.results / "run.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(
        path,
        {
            **origin(stage.item.stage, stage.run.run_id, settings.tracking.experiment),
            "settings_hash": stage.fingerprint,
            "machine": machine(settings.trainer.threads if "trainer" in STAGES[stage.item.stage] else None),
            **stage.cost,
        },
    )


def origin(stage: str, run_id: str, experiment: str) -> dict[str, JsonValue]:
    """The head of every ``run.json``: which run, in which store, from which code."""
    commit, dirty = git_state()
    uri = tracking_uri()
    return {
        "stage": stage,
        "run_id": run_id,
        "tracking_uri": "sqlite:///mlflow.db" if uri.startswith("sqlite:") else uri,
        "experiment": experiment,
        "commit": commit,
        "dirty": dirty,
    }


def _training_run(item: Item) -> str | None:
    """The run that trained the agent which a study is about."""
    record = item.results_of("train") / "run.json"
    if item.stage in ("collect", "train", "report") or not record.is_file():
        return None
    run_id: str = json.loads(record.read_text())["run_id"]
    return run_id


def _run_id(work: Path | None) -> str | None:
    """The id of the run that belongs to a work directory; it stands there before the run begins."""
    if work is None:
        return None
    path = work / "run_id"
    if not path.is_file():
        work.mkdir(parents=True, exist_ok=True)
        write_atomically(path, uuid.uuid4().hex.encode())
    return path.read_text()


@contextmanager
def _interruptible(work: Path | None) -> Iterator[None]:
    """Within, SIGTERM and Ctrl-C end the stage with their exit code and a hint how to go on."""
    try:
        with interrupting_signals():
            yield
    except Interrupted:
        kept = f"the work is kept in {work}" if work is not None else "nothing was published"
        print(f"interrupted; {kept}: run the same command again to go on", file=sys.stderr, flush=True)
        raise
