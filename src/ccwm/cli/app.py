"""The ``ccwm`` command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from ccwm.cells import STAGES
from ccwm.cli.data import data
from ccwm.cli.doctor import doctor
from ccwm.cli.plan import plan
from ccwm.cli.play import play
from ccwm.cli.tune import tune
from ccwm.cli.verify import verify
from ccwm.envs.gl import probe
from ccwm.envs.tasks import check_task, needs_gl
from ccwm.errors import did_you_mean, run_main
from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import BadParams
from ccwm.settings.presets import PRESETS, apply_preset, preset_names, summary
from ccwm.settings.reference import json_schema, reference_page
from ccwm.settings.variants import resolve

PARAMS = Path("params.yaml")
SCHEMA = Path("docs/params.schema.json")
REFERENCE = Path("docs/settings.md")

app = typer.Typer(no_args_is_help=True, add_completion=False, help="World models that learn from retracing.")
params = typer.Typer(no_args_is_help=True, help="Look at the settings in params.yaml.")
tracking = typer.Typer(no_args_is_help=True, help="Look after the MLflow store.")
app.add_typer(data, name="data")
app.add_typer(params, name="params")
app.add_typer(tracking, name="tracking")
app.command()(verify)
app.command()(play)
app.command()(plan)
app.command()(doctor)
app.add_typer(tune, name="tune")
console = Console()


@params.command("show")
def show(
    variant: Annotated[str, typer.Option(help="Apply this variant's overrides.")] = "",
) -> None:
    """Print the settings, a variant's overrides applied."""
    from io import StringIO

    from ruamel.yaml import YAML

    settings = load_settings(PARAMS)
    if variant:
        settings = resolve(settings, variant)
    text = StringIO()
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.dump(settings.model_dump(mode="json", exclude={"study", "variants"} if variant else None), text)
    if console.is_terminal:
        console.print(Syntax(text.getvalue(), "yaml", background_color="default"))
    else:  # rich would wrap long lines, and take lists for its markup
        typer.echo(text.getvalue(), nl=False)


@params.command("check")
def check() -> None:
    """Check params.yaml whole: every key, every variant, every task."""
    settings = load_settings(PARAMS)
    for task in settings.study.tasks:
        check_task(task)
    runs = len(settings.study.tasks) * len(settings.study.variants) * len(settings.study.seeds)
    console.print(f"{PARAMS} is fine: {runs} agents to train")


@params.command("schema")
def schema(
    write: Annotated[bool, typer.Option("--write", help=f"Write it to {SCHEMA}.")] = False,
) -> None:
    """Print the JSON schema of params.yaml, which editors use to complete and check it."""
    if write:
        SCHEMA.write_text(json_schema(), encoding="utf-8")
    else:
        typer.echo(json_schema(), nl=False)


@params.command("docs")
def docs(
    write: Annotated[bool, typer.Option("--write", help=f"Write it to {REFERENCE}.")] = False,
) -> None:
    """Print the reference of every key, its range, default and meaning."""
    if write:
        REFERENCE.write_text(reference_page(), encoding="utf-8")
    else:
        typer.echo(reference_page(), nl=False)


@app.command()
def preset(
    name: Annotated[str, typer.Argument(help="Write this preset to params.yaml; without a name, list all.")] = "",
) -> None:
    """List the presets, or write one to params.yaml."""
    if name:
        apply_preset(name, PARAMS)
        console.print(f"{PARAMS} is now the preset {name!r}; `dvc repro` runs it")
        return
    table = Table("preset", "what it is for", box=None)
    for each in preset_names():
        table.add_row(Text(each, "bold"), Text(summary(PRESETS / f"{each}.yaml")))
    console.print(table)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    stage: Annotated[str, typer.Argument(help=f"One of {', '.join(STAGES)}.")],
) -> None:
    """Run one stage by hand: `ccwm run train --task walker_walk --variant ccwm --seed 0`."""
    if stage not in STAGES:
        raise BadParams(f"unknown stage {stage!r}.{did_you_mean(stage, STAGES)}")
    become(f"pipeline/{stage.replace('-', '_')}.py", *context.args)


@app.command()
def gl() -> None:
    """Check that pixels can be rendered, if a task of params.yaml needs it."""
    tasks = [task for task in load_settings(PARAMS).study.tasks if needs_gl(task)]
    if tasks:
        probe()
        console.print(f"rendering works (MUJOCO_GL={os.environ.get('MUJOCO_GL')})")
    else:
        console.print("no task of params.yaml needs OpenGL")


@app.command()
def ui(port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 5000) -> None:
    """Open the MLflow UI on 127.0.0.1, where every run can be compared."""
    from ccwm.tracking import ensure_store, tracking_uri

    ensure_store()
    console.print(f"MLflow UI at http://127.0.0.1:{port}; Ctrl-C ends it")
    become("-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", str(port), "--backend-store-uri", tracking_uri())


@tracking.command("sync")
def sync() -> None:
    """Send what could not be sent while the tracking store was away."""
    from ccwm.tracking import sync as send
    from ccwm.tracking.stage import WORK

    report = send(WORK / "spool")
    console.print(report)


def become(*arguments: str) -> NoReturn:
    """Go on as another Python program, so that a signal reaches it and it may take its time to leave a checkpoint."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *arguments])


def main() -> None:
    """Run the command; what a person can mend is told in a sentence, not in a traceback."""
    run_main(app)
