"""What the report is made of: words, tables, pictures and videos, which the pages only lay out.

``style`` is always a CSS class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from ccwm.cells import Cell


class Entry(NamedTuple):
    """One field of a table: its text, what it sorts by, the cells that it names, smaller lines below."""

    text: str
    sort: float | str = ""
    cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()
    style: str = ""


class Words(NamedTuple):
    """A paragraph."""

    text: str
    style: str = ""


class Heading(NamedTuple):
    """The name of what follows."""

    text: str


class Table(NamedTuple):
    """Headings, rows of entries, the caption that says how to read them, and the cells that they come from.

    The first ``texts`` columns are words.
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    texts: int = 1
    cells: tuple[Cell, ...] = ()
    style: str = ""


class Picture(NamedTuple):
    """A figure by the name of its file."""

    file: str
    svg: Markup
    label: str
    note: str = ""
    style: str = ""


class Video(NamedTuple):
    """A video by the name of its file."""

    file: str
    data: str
    label: str
    note: str = ""


class Panels(NamedTuple):
    """Pictures and videos side by side; ``whole`` is a file with all of them."""

    shown: Sequence[Picture | Video]
    style: str = ""
    whole: Picture | None = None


class Legend(NamedTuple):
    """The colours of the variants."""

    colours: dict[str, str]


class Details(NamedTuple):
    """Blocks that unfold."""

    summary: str
    blocks: Sequence[Block]


Block = Words | Heading | Table | Picture | Video | Panels | Legend | Details


def kind(block: Block) -> str:
    """The name by which the templates know a block."""
    return type(block).__name__.lower()


def cell_groups(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells that differ in their seed alone, by the start of their name: `evaluate@walker_walk-ccwm-`."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(str(cell).removesuffix(str(cell.seed)), []).append(cell)
    return groups
