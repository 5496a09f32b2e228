"""`ccwm preset`: files of settings to start from."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ccwm.cells import PARAMS
from ccwm.settings.presets import PRESETS, apply_preset, preset_names, summary


def preset(
    name: Annotated[str, typer.Argument(help="Write this preset to params.yaml; without a name, list all.")] = "",
) -> None:
    """List the presets, or write one to params.yaml."""
    if name:
        apply_preset(name, PARAMS)
        typer.echo(f"{PARAMS} is now the preset {name!r}; `dvc repro` runs it")
        return
    table = Table("preset", "what it is for", box=None)
    for each in preset_names():
        table.add_row(Text(each, "bold"), Text(summary(PRESETS / f"{each}.yaml")))
    Console().print(table)
