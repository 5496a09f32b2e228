"""`ccwm gl`: whether this machine can render."""

from __future__ import annotations

import os

import typer

from ccwm.cells import PARAMS
from ccwm.envs.gl import probe
from ccwm.envs.tasks import needs_gl
from ccwm.settings.loading import load_settings


def gl() -> None:
    """Check that pixels can be rendered, if params.yaml needs it: a task that MuJoCo renders, observed as pixels."""
    settings = load_settings(PARAMS)
    if not any(needs_gl(task, settings.env) for task in settings.study.tasks):
        typer.echo("no task of params.yaml needs OpenGL")
        return
    probe()
    typer.echo(f"rendering works (MUJOCO_GL={os.environ.get('MUJOCO_GL')})")
