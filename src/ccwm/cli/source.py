"""Text in a language, in colours on a terminal."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.syntax import Syntax


def print_source(text: str, language: str) -> None:
    """Print `yaml`, a `diff` and the like; byte for byte where nobody watches."""
    console = Console()
    if console.is_terminal:
        console.print(Syntax(text, language, background_color="default"))
    else:  # rich would wrap long lines, and take lists for its markup
        typer.echo(text, nl=False)
