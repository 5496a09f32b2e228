"""A counter for work that takes longer than a few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress


@contextmanager
def counter(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Show ``total`` pieces of work, a bar on a terminal and a line elsewhere; call what it yields after each piece."""
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"{label}: {total}", highlight=False, soft_wrap=True)
        yield lambda: None
        return
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)
