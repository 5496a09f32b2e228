"""What every pipeline stage shares: arguments, settings, signals, the MLflow run and its record."""

from __future__ import annotations

import argparse
import logging
import re
import resource
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from ccwm.cells import PARAMS, STAGES, Cell, settings_hash, stage_values
from ccwm.envs.gl import probe
from ccwm.envs.tasks import check_task, needs_gl
from ccwm.errors import UserError
from ccwm.files import md5, write_atomically, write_json
from ccwm.machine import machine
from ccwm.readers import BadResult, read_object
from ccwm.settings.loading import load_settings
from ccwm.settings.schema import Settings
from ccwm.settings.section import Seed
from ccwm.settings.variants import resolve
from ccwm.tracking.git import git_state
from ccwm.tracking.run import Run, stage_run
from ccwm.tracking.store import connect, tracking_uri
from ccwm.training.signals import Interrupted, interrupting_signals

SEED = TypeAdapter(Seed)


@dataclass
class Stage:
    """An open stage: just the settings that it declares, its run, and what it cost."""

    settings: Settings
    run: Run
    cost: dict[str, JsonValue] = field(default_factory=dict)


def parse_cell(stage: str, *, variants: bool = True) -> Cell:
    """Read --task, --variant and --seed from the command line."""
    parser = argparse.ArgumentParser(description=f"Stage {stage} of the pipeline, for one cell of its matrix.")
    parser.add_argument("--task", required=True, help="as in study.tasks")
    if variants:
        parser.add_argument("--variant", required=True, help="a name of variants")
    parser.add_argument("--seed", type=int, required=True, help="as in study.seeds")
    cell = Cell(stage, **vars(parser.parse_args()))
    try:
        SEED.validate_python(cell.seed)
    except ValidationError as error:
        raise UserError(
            f"--seed {cell.seed}: {error.errors()[0]['msg']}", hint="study.seeds has the same bounds"
        ) from None
    return cell


def stage_settings(cell: Cell, *, renders: bool = True) -> Settings:
    """The whole file checked, a variant's overrides applied, the task known, GL there: before anything is written."""
    settings = load_settings(PARAMS)
    if cell.variant:
        settings = resolve(settings, cell.variant)
    for task in [cell.task] if cell.task else settings.study.tasks:
        check_task(task)
    if renders and needs_gl(cell.task, settings.env):
        probe()
    if "trainer" in STAGES[cell.stage]:
        from ccwm.training.device_check import check_devices, one_device  # torch, which the other stages need not

        check_devices(settings.trainer if cell.stage == "train" else one_device(settings.trainer))
    return settings


@contextmanager
def open_stage(cell: Cell, *, renders: bool = True, work: Path | None = None) -> Iterator[Stage]:
    """Open a stage: settings checked, signals caught, a run started; its record is written at the end.

    ``work`` is a directory that outlives a killed stage; the run's id is kept there, so that a resumed stage stays
    one run.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    settings = stage_settings(cell, renders=renders)
    tracking_uri()  # before anything runs: what is wrong with the address of the store is the user's to mend
    with suppress(
        Exception
    ):  # a store that is damaged or cannot be made is unreachable, which the run says and survives
        connect()
    fingerprint, start = settings_hash(settings, cell), time.monotonic()
    run_of_stage = stage_run(
        cell,
        settings.tracking,
        settings=stage_values(settings, cell.stage),
        tags={"settings_hash": fingerprint},
        run_id=_run_id(work) if work else None,
        parent_run_id=_training_run(cell),
    )
    try:
        with interrupting_signals(), run_of_stage as run:
            stage = Stage(for_stage(settings, cell.stage), run)
            yield stage
            made = sorted(path for path in cell.results.rglob("*") if path.is_file() and path != cell.record)
            cell.record.parent.mkdir(parents=True, exist_ok=True)
            record = {
                **origin(cell.stage, run.run_id, settings.tracking.experiment),
                "settings_hash": fingerprint,
                "machine": machine(settings.trainer.threads if "trainer" in STAGES[cell.stage] else None),
                "seconds": round(time.monotonic() - start, 3),
                "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
                **stage.cost,
                "files": {path.as_posix(): md5(path) for path in made},
            }
            write_json(cell.record, record)
    except Interrupted:
        kept = f"the work is kept in {work}" if work else "nothing was published"
        print(f"interrupted; {kept}: run the same command again to resume", file=sys.stderr, flush=True)
        raise


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


def _training_run(cell: Cell) -> str | None:
    """The run that trained the agent which a study is about."""
    record = cell.of("train").record
    if cell.stage in ("collect", "train", "report") or not record.is_file():
        return None
    with suppress(BadResult, KeyError):  # a damaged record costs no more than the link
        return str(read_object(record)["run_id"])
    return None


def _run_id(work: Path) -> str:
    """The id of the run that belongs to a work directory; it stands there before the run starts."""
    path = work / "run_id"
    if not path.is_file() or not re.fullmatch(rb"[0-9a-f]{32}", path.read_bytes()):
        work.mkdir(parents=True, exist_ok=True)
        write_atomically(path, uuid.uuid4().hex.encode())
    return path.read_text()


def for_stage(settings: Settings, stage: str) -> Settings:
    """Just the sections that cells.STAGES declares for the stage; reading another raises AttributeError."""
    declared = {name: getattr(settings, name) for name in (*STAGES[stage], "tracking")}
    view = Settings.model_construct(**declared)
    for name in Settings.model_fields.keys() - declared.keys():
        view.__dict__.pop(name, None)  # a section with a default would be there, and would be read unseen
    return view
