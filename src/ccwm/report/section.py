"""What a section of the report is made of: words, tables, pictures and videos, which the pages only lay out."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from ccwm.cells import Cell
from ccwm.report import figures, format
from ccwm.report.claims import Paper
from ccwm.report.results import Results
from ccwm.studies.images import write_mp4


class Entry(NamedTuple):
    """One field of a table: its text, what it sorts by, the cells that it names, smaller lines below, a CSS class."""

    text: str
    sort: float | str = ""
    cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()
    style: str = ""


@dataclass(frozen=True)
class Words:
    """A paragraph; ``style`` is a CSS class, and ``cells`` are named at its end."""

    block: ClassVar = "words"
    text: str
    style: str = ""
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Heading:
    """The name of what follows."""

    block: ClassVar = "heading"
    text: str


@dataclass(frozen=True)
class Table:
    """Headings, rows of entries, and the caption that says how to read them; the first ``texts`` columns are words."""

    block: ClassVar = "table"
    caption: str
    headings: list[str]
    rows: list[list[Entry]]
    texts: int = 1
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
    blocks: list[Block]


Block = Words | Heading | Table | Picture | Video | Panels | Legend | Details


@dataclass(frozen=True)
class Report:
    """What every section builds from, and the folder that its figures and tables go to."""

    results: Results
    folder: Path
    colours: dict[str, str]
    target_score: float
    paper: Paper | None

    def picture(self, figure: Figure, name: str, label: str, *, note: str = "", style: str = "") -> Picture:
        """Write a figure as SVG and PDF; a task may hold a colon, which not every disk allows in a file's name."""
        file = name.replace(":", "-")
        return Picture(file, Markup(figures.save(figure, self.folder / "figures", file)), label, note, style)

    def video(self, frames: Any, name: str, label: str, *, note: str = "") -> Video:
        """Write frames as MP4."""
        path = self.folder / "figures" / f"{name}.mp4".replace(":", "-")
        write_mp4(path, frames)
        return Video(path.name, base64.b64encode(path.read_bytes()).decode("ascii"), label, note)

    def csv(self, name: str, rows: pd.DataFrame | Sequence[dict[str, Any]]) -> None:
        """Write rows unrounded, their cells by DVC's names; no file where there is no row."""
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
        if len(frame):
            if "cells" in frame:
                frame = frame.assign(cells=[" ".join(map(str, of)) for of in frame["cells"]])
            frame.to_csv(self.folder / "tables" / f"{name}.csv", index=False, lineterminator="\n")

    def by_task(self, build: Callable[[str], list[Block]]) -> list[Block]:
        """The blocks of every task that has any, below its name where the study has several."""
        tasks = self.results.study.tasks
        found = {task: blocks for task in tasks if (blocks := build(task))}
        heading = [Heading] if len(tasks) > 1 else []
        return [block for task, blocks in found.items() for block in (*(of(task) for of in heading), *blocks)]


@dataclass(frozen=True)
class Section:
    """A part of the page: the files that it needs of each stage, and how its blocks are built."""

    id: str
    title: str
    build: Callable[[Report], list[Block]]
    needs: dict[str, tuple[str, ...]]


def table(
    caption: str, rows: Sequence[Any], columns: Sequence[tuple[str, Callable[[Any], Entry]]], *, texts: int = 1
) -> Table:
    """A table with a line for each row; columns that nobody measured are left out."""
    lines = [[make(row) for _, make in columns] for row in rows]
    kept = [i for i in range(len(columns)) if any(line[i].text != format.NONE for line in lines)]
    return Table(caption, [columns[i][0] for i in kept], [[line[i] for i in kept] for line in lines], texts)


def words(value: str) -> Entry:
    """A name that sorts by itself."""
    return Entry(value, value)


def number(value: float | None, form: format.Form = format.number) -> Entry:
    """A number that sorts by itself; a dash for None."""
    return Entry(form(value), "" if value is None else float(value))


def shown(text: str, sort: float | None) -> Entry:
    """A text that sorts by a number; what is missing stays last."""
    return Entry(text, "" if sort is None else sort)


def interval(low: float | None, high: float | None, form: format.Form = format.number) -> Entry:
    """An interval that sorts by its low end."""
    return shown(format.interval(low, high, form), low)


def sources(cells: Iterable[Cell]) -> Entry:
    """The cells that a row comes from."""
    named = tuple(cells)
    return Entry(cell_names(named), "", named)


def cell_groups(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells that differ in their seed alone, by the start of their name: `evaluate@walker_walk-ccwm-`."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(str(cell).removesuffix(str(cell.seed)), []).append(cell)
    return groups


def cell_names(cells: Iterable[Cell]) -> str:
    """Cells by DVC's names, those of several seeds as a shell would: `train@walker_walk-ccwm-{0,1}`."""
    return (
        " ".join(
            f"{start}{of[0].seed}" if len(of) == 1 else f"{start}{{{','.join(str(cell.seed) for cell in of)}}}"
            for start, of in cell_groups(cells).items()
        )
        or format.NONE
    )
