"""The ``ccwm`` command: every command lives in a file of its own, which imports torch only when it runs."""

from __future__ import annotations

import typer

from ccwm.cli.data import data
from ccwm.cli.doctor import doctor
from ccwm.cli.findings import findings
from ccwm.cli.fleet import fleet
from ccwm.cli.gl import gl
from ccwm.cli.params import params
from ccwm.cli.plan import plan
from ccwm.cli.play import play
from ccwm.cli.preset import preset
from ccwm.cli.run import run
from ccwm.cli.tracking import tracking
from ccwm.cli.tune import tune
from ccwm.cli.ui import ui
from ccwm.cli.verify import verify
from ccwm.errors import run_main

app = typer.Typer(no_args_is_help=True, add_completion=False, help="World models that learn from retracing.")
for command in (preset, plan, doctor, gl, findings, ui, verify, play):
    app.command()(command)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(run)
for name, group in {"params": params, "data": data, "tracking": tracking, "tune": tune, "fleet": fleet}.items():
    app.add_typer(group, name=name)


def main() -> None:
    """Run the command; user errors print without a traceback."""
    run_main(app)
