"""`ccwm params`: show, check and document the settings."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from ruamel.yaml import YAML

from ccwm.cells import PARAMS, cells
from ccwm.cli.source import print_source
from ccwm.envs.tasks import check_task
from ccwm.settings.loading import load_settings
from ccwm.settings.reference import json_schema, reference_page
from ccwm.settings.variants import resolve

SCHEMA = Path("docs/params.schema.json")
REFERENCE = Path("docs/settings.md")

params = typer.Typer(no_args_is_help=True, help="Look at the settings in params.yaml.")


@params.command("show")
def show(
    variant: Annotated[str, typer.Option(help="Apply this variant's overrides.")] = "",
) -> None:
    """Print the settings, a variant's overrides applied."""
    settings = load_settings(PARAMS)
    if variant:
        settings = resolve(settings, variant)
    text, yaml = StringIO(), YAML()
    yaml.default_flow_style = None
    yaml.dump(settings.model_dump(mode="json", exclude={"study", "variants"} if variant else None), text)
    print_source(text.getvalue(), "yaml")


@params.command("check")
def check() -> None:
    """Check params.yaml whole: every key, every variant, every task."""
    settings = load_settings(PARAMS)
    for task in settings.study.tasks:
        check_task(task)
    typer.echo(f"{PARAMS} is fine: {len(cells(settings.study, 'train'))} agents to train")


@params.command("schema")
def schema(
    write: Annotated[bool, typer.Option("--write", help=f"Write it to {SCHEMA}.")] = False,
) -> None:
    """Print the JSON schema of params.yaml, which editors use to complete and check it."""
    _print_or_write(json_schema(), SCHEMA, write=write)


@params.command("docs")
def docs(
    write: Annotated[bool, typer.Option("--write", help=f"Write it to {REFERENCE}.")] = False,
) -> None:
    """Print the reference of every key, its range, default and meaning."""
    _print_or_write(reference_page(), REFERENCE, write=write)


def _print_or_write(text: str, path: Path, *, write: bool) -> None:
    if write:
        path.write_text(text, encoding="utf-8")
    else:
        typer.echo(text, nl=False)
