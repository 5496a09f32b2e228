"""`ccwm fleet`: the cells of the study in parallel, on this machine or on a Ray cluster."""

from __future__ import annotations

import os
import platform
import signal
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ccwm.errors import UserError, did_you_mean

fleet = typer.Typer(no_args_is_help=True, help="Run the study's cells in parallel (docs/fleet.md).")
console = Console(stderr=True)
STOP_SECONDS = 120.0

Into = Annotated[
    Path | None, typer.Option(help="The directory that keeps a study beside the project, such as evidence/maze.")
]


@fleet.command("run")
def run(
    preset: Annotated[
        str | None, typer.Option(help="Run this preset beside the project, into evidence/PRESET or --into.")
    ] = None,
    into: Into = None,
    commit: Annotated[str | None, typer.Option(help="Run a study with the code of this commit.")] = None,
    address: Annotated[
        str | None, typer.Option(help="A Ray cluster: auto, HOST:PORT or ray://HOST:PORT; default: all cores here.")
    ] = None,
    cells: Annotated[str, typer.Option(help="Only cells that match, and what they need: 'train@*-ccwm-*'.")] = "*",
    cpus_per_cell: Annotated[float | None, typer.Option(help="Default: trainer.threads.")] = None,
    gpus_per_cell: Annotated[float | None, typer.Option(help="0.5 puts two cells on a GPU.")] = None,
) -> None:
    """Run every cell that DVC says is stale, as many at once as fit; the same command again resumes."""
    from ccwm.fleet.run import Request, run_fleet
    from ccwm.fleet.study import EVIDENCE, study_root

    if preset is not None and into is None:
        into = EVIDENCE / preset
    if commit is not None and into is None:
        raise UserError("--commit is for studies beside the project", hint="name one by --preset or --into")
    request = Request(into, preset, commit, address, cells, cpus_per_cell, gpus_per_cell)
    todo, failed, adopted = run_fleet(Path.cwd(), request)
    for study, count in adopted.items():
        console.print(f"{count} cells are taken over from {study}, which has finished them", highlight=False)
    done = f"{len(todo) - len(failed)} of {len(todo)} stale cells are done" if todo else "no cell is stale"
    console.print(done, highlight=False)
    for cell, reason in failed.items():
        console.print(f"failed: {cell} ({reason}); see `ccwm fleet logs {cell}`", highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(1)
    if into is not None:
        report = study_root(Path(), into) / "report" / "index.html"
        console.print(f"Results: {into}" + (f"; the report: {report}" if report.is_file() else ""), soft_wrap=True)


@fleet.command("status")
def status(into: Into = None) -> None:
    """Show the cells of the fleet that is running, or of the last one."""
    from ccwm.fleet.home import is_held
    from ccwm.fleet.progress import read_status, table
    from ccwm.fleet.study import study_root

    root = study_root(Path.cwd(), into)
    rows = read_status(root)
    if not rows:
        raise UserError("no fleet has run here", hint="`ccwm fleet run` starts one")
    Console().print(table(rows))
    typer.echo("a fleet is running" if is_held(root) else "no fleet is running")


@fleet.command("logs")
def logs(cell: Annotated[str, typer.Argument(help="Such as train@walker_walk-ccwm-0.")], into: Into = None) -> None:
    """Print what a cell has printed so far."""
    from ccwm.fleet.progress import LOGS
    from ccwm.fleet.study import study_root

    folder = study_root(Path.cwd(), into) / LOGS
    path = folder / f"{cell}.log"
    known = [each.stem for each in folder.glob("*.log")]
    if cell not in known:
        raise UserError(f"no log of {cell!r}.{did_you_mean(cell, known)}")
    typer.echo(path.read_text(errors="replace"), nl=False)


@fleet.command("stop")
def stop(into: Into = None) -> None:
    """End the running fleet as Ctrl-C would: running cells write their checkpoints."""
    from ccwm.fleet.home import is_held
    from ccwm.fleet.progress import read_about
    from ccwm.fleet.study import study_root

    root = study_root(Path.cwd(), into)
    if not is_held(root):
        raise UserError("no fleet is running here")
    about = read_about(root)
    if about["host"] != platform.node():
        raise UserError(f"the fleet was started on {about['host']}", hint="stop it there")
    os.kill(int(about["pid"]), signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    while is_held(root):
        if time.monotonic() > deadline:
            raise UserError(f"process {about['pid']} has not ended within {STOP_SECONDS:.0f} s")
        time.sleep(0.5)
    typer.echo("stopped; `ccwm fleet run` resumes")
