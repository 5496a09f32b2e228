"""What the report is made of: words, tables, pictures and videos, which the pages only lay out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from markupsafe import Markup

from ccwm.cells import Cell


class Entry(NamedTuple):
    """One field of a table: its text, what it sorts by, the cells that it names, smaller lines below, a CSS class."""

    text: str
    sort: float | str = ""
    cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()
    style: str = ""


@dataclass(frozen=True)
class Words:
    """A paragraph; ``style`` is a CSS class."""

    block: ClassVar = "words"
    text: str
    style: str = ""


@dataclass(frozen=True)
class Heading:
    """The name of what follows."""

    block: ClassVar = "heading"
    text: str


@dataclass(frozen=True)
class Table:
    """Headings, rows of entries, the caption that says how to read them, and the cells that they come from.

    The first ``texts`` columns are words; ``style`` is a CSS class.
    """

    block: ClassVar = "table"
    caption: str
    headings: list[str]
    rows: list[list[Entry]]
    texts: int = 1
    cells: tuple[Cell, ...] = ()
    style: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure by the name of its file; ``style`` is a CSS class."""

    block: ClassVar = "picture"
    file: str
    svg: Markup
    label: str
    note: str = ""
    style: str = ""


@dataclass(frozen=True)
class Video:
    """A video by the name of its file."""

    block: ClassVar = "video"
    file: str
    data: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Panels:
    """Pictures and videos side by side; ``whole`` is a file with all of them."""

    block: ClassVar = "panels"
    shown: list[Picture | Video]
    style: str = ""
    whole: Picture | None = None


@dataclass(frozen=True)
class Legend:
    """The colours of the variants."""

    block: ClassVar = "legend"
    colours: dict[str, str]


@dataclass(frozen=True)
class Details:
    """Blocks that unfold."""

    block: ClassVar = "details"
    summary: str
    blocks: Sequence[Block]


Block = Words | Heading | Table | Picture | Video | Panels | Legend | Details


def cell_groups(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells that differ in their seed alone, by the start of their name: `evaluate@walker_walk-ccwm-`."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(str(cell).removesuffix(str(cell.seed)), []).append(cell)
    return groups
