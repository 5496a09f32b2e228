"""`ccwm fleet run`: from the stale cells of a project to a project with none."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path
from typing import NamedTuple

from ccwm.cells import CLAIMS, PARAMS, Cell, run_command
from ccwm.errors import UserError
from ccwm.fleet import cluster
from ccwm.fleet.adoption import adopt
from ccwm.fleet.code import capture
from ccwm.fleet.home import Home, held
from ccwm.fleet.progress import Progress
from ccwm.fleet.study import lay_out_study, other_studies, study_root
from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import parse, read_yaml
from ccwm.settings.schema import Settings
from ccwm.training.signals import deferred_signals


class Request(NamedTuple):
    """What to run, and where."""

    into: Path | None = None
    """The directory that keeps a study beside the project."""
    preset: str | None = None
    commit: str | None = None
    address: str | None = None
    pattern: str = "*"
    cpus: float | None = None
    gpus: float | None = None


class Outcome(NamedTuple):
    """The cells that were to run, why each of those failed that did, and how many each other study had finished."""

    todo: list[Cell]
    failed: dict[Cell, str]
    adopted: dict[str, int]


def run_fleet(project: Path, request: Request) -> Outcome:
    """Run what is stale; a study whose cells are all done gets its report."""
    from ccwm.tracking.store import connect, tracking_uri
    from ccwm.tracking.sync import sync

    root = study_root(project, request.into)
    with held(root):
        if request.into is None:
            code, settings = capture(project), load_settings(root / PARAMS)
        else:
            code = lay_out_study(project, request.into, preset=request.preset, commit=request.commit)
            settings = parse(read_yaml(root / PARAMS), where=str(root / PARAMS))  # older code has fewer keys
        kept = request.into and project / request.into
        home = Home(root, settings.study, mirror=kept)
        adopted = adopt(home, other_studies(kept)) if kept else {}
        todo, failed, uri = home.stale(request.pattern), dict[Cell, str](), tracking_uri()
        if todo:
            connect()  # its first creation races
            with cluster.connected(request.address) as resources, deferred_signals() as stop:
                from ccwm.fleet.scheduler import Scheduler, actors_by_variant

                actors = max(actors_by_variant(settings).values())
                share = share_of(settings, resources, request.cpus, request.gpus, actors=actors)
                scheduler = Scheduler(home, code, settings, todo, share=share, uri=uri)
                about = {"pid": os.getpid(), "host": platform.node(), "began": time.time(), "commit": code.commit}
                with Progress(root, todo, about) as progress:
                    scheduler.run(progress, stop)
            failed = scheduler.failed
            if home.took_spools:
                sync(root / ".work" / "spool")
        if kept:
            _write_page(project, kept)
        if kept and not failed and not home.stale():
            _report(root, uri)
        return Outcome(todo, failed, adopted)


def _write_page(project: Path, kept: Path) -> None:
    """Write the page that git keeps of a study, where the project says what the paper claims."""
    from ccwm.report.claims import load_claims
    from ccwm.report.sources import read_source
    from ccwm.study_page import write_page

    if (project / CLAIMS).is_file():
        write_page(read_source(kept), load_claims(project / CLAIMS))


def _report(root: Path, uri: str) -> None:
    """Build the report of a study; that of the project is `dvc repro`'s."""
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": paths, "PYTHONPATH": str(root / "src"), "MLFLOW_TRACKING_URI": uri}
    command = [sys.executable, "-m", "dvc", "repro", "--single-item", "report"]
    run_command(command, "the report could not be built", root, environment)


def share_of(
    settings: Settings,
    there: dict[str, float],
    cpus: float | None = None,
    gpus: float | None = None,
    *,
    actors: int = 0,
    times: int = 1,
) -> tuple[float, float]:
    """CPUs and GPUs of a cell: as asked for, else what its settings use; so many cells must fit with their actors."""
    trainer = settings.trainer
    if gpus is None:
        gpus = float(trainer.devices) if there.get("GPU", 0) and trainer.accelerator != "cpu" else 0.0
    if cpus is None:
        cpus = float(trainer.threads * (1 if gpus else trainer.devices))
    for name, wanted in (("CPU", (cpus + actors) * times), ("GPU", gpus * times)):
        if wanted > there.get(name, 0):
            who = "a cell needs" if times == 1 else f"{times} processes need"
            raise UserError(f"{who} {wanted:g} {name}s, the whole cluster has {there.get(name, 0):g}")
    return cpus, gpus
