"""Rows of numbers, over the seeds of each variant, and the tables that show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from ccwm.cells import Cell
from ccwm.report import format
from ccwm.report.blocks import Entry, Table
from ccwm.report.statistics import average

Row = dict[str, Any]
"""A line of a table and of its CSV file: names and numbers by key; ``cells`` are those that they come from."""
Read = TypeVar("Read")


def lines(read: Any) -> list[dict[Any, Any]]:
    """The lines of a table that was read, or the one of a NamedTuple."""
    return read.to_dict("records") if isinstance(read, pd.DataFrame) else [read._asdict()]


def rows_of(
    found: Mapping[str, Mapping[Cell, Read]], lines: Callable[[Read], Iterable[dict[Any, Any]]] = lines
) -> list[Row]:
    """All lines of what was read for each cell, each with the cell's place in the matrix."""
    return [
        {**line, "task": cell.task, "variant": cell.variant, "seed": cell.seed, "cells": (cell,)}
        for of in found.values()
        for cell, read in of.items()
        for line in lines(read)
    ]


def averaged(rows: Iterable[Row], *by: str, **how: Callable[[list[Any]], Any]) -> list[Row]:
    """One row for each combination of ``by``: means over seeds, texts joined, cells together, or ``how`` by key."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in by), []).append(row)
    joins: dict[str, Callable[[list[Any]], Any]] = {"cells": lambda cells: tuple(chain.from_iterable(cells)), **how}
    return [
        {
            key: of[0][key] if key in by else joins.get(key, _together)([row[key] for row in of])
            for key in dict.fromkeys([*by, "cells", *of[0]])
            if key != "seed"
        }
        for of in groups.values()
    ]


def _together(values: list[Any]) -> Any:
    if any(isinstance(value, str) for value in values):
        return ", ".join(dict.fromkeys(filter(None, values)))
    return average(values)


class Column(NamedTuple):
    """A heading, and the keys of a row that ``form`` writes as one text; it sorts by the first. ``style``: CSS."""

    heading: str
    keys: str | tuple[str, ...]
    form: Callable[..., str] = format.value
    style: str = ""


def table(caption: str, rows: Sequence[Row], columns: Sequence[Column], *, texts: int = 1) -> Table:
    """A table with a line for each row; columns that nobody measured are left out."""
    made = {column: [entry(row, column) for row in rows] for column in columns}
    kept = {column: of for column, of in made.items() if any(entry.text != format.NONE for entry in of)}
    cells = dict.fromkeys(cell for row in rows for cell in row.get("cells", ()))
    lines = list(zip(*kept.values(), strict=True))
    return Table(caption, [column.heading for column in kept], lines, texts, tuple(cells))


def entry(row: Row, column: Column) -> Entry:
    """One field; a dash where the row has none of its values, which sorts last."""
    keys = (column.keys,) if isinstance(column.keys, str) else column.keys
    values = [None if isinstance(of := row.get(key), float) and math.isnan(of) else of for key in keys]
    text = format.NONE if all(value is None for value in values) else column.form(*values)
    return Entry(text, "" if values[0] is None else values[0], style=column.style)
