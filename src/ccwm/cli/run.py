"""`ccwm run`: one stage by hand."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from ccwm.cells import STAGES
from ccwm.errors import UserError, did_you_mean


def run(
    context: typer.Context,
    stage: Annotated[str, typer.Argument(help=f"One of {', '.join(STAGES)}.")],
) -> None:
    """Run one stage by hand: `ccwm run train --task walker_walk --variant ccwm --seed 0`."""
    if stage not in STAGES:
        raise UserError(f"unknown stage {stage!r}.{did_you_mean(stage, STAGES)}")
    become(f"pipeline/{stage.replace('-', '_')}.py", *context.args)


def become(*arguments: str) -> NoReturn:
    """Continue as another Python program, so that a signal reaches it and it may take its time to save a checkpoint."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *arguments])
