"""`ccwm tracking`: look after the MLflow store."""

from __future__ import annotations

import typer

from ccwm.cells import WORK

tracking = typer.Typer(no_args_is_help=True, help="Look after the MLflow store.")


@tracking.command("sync")
def sync() -> None:
    """Send what could not be sent while the tracking store was unreachable."""
    from ccwm.tracking import sync as send

    report = send(WORK / "spool")
    typer.echo(f"{len(report.sent)} runs sent, {len(report.kept)} kept")
    for directory, reason in report.kept.items():
        typer.echo(f"{directory}: {reason}")
    if report.kept:
        raise typer.Exit(1)
