"""Tables from rows of numbers, and the entries that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ccwm.report import format
from ccwm.report.blocks import Entry, Table


def table(
    caption: str, rows: Sequence[Any], columns: Sequence[tuple[str, Callable[[Any], Entry]]], *, texts: int = 1
) -> Table:
    """A table with a line for each row; columns that nobody measured are left out. A row may name its ``cells``."""
    lines = [[make(row) for _, make in columns] for row in rows]
    kept = [i for i in range(len(columns)) if any(line[i].text != format.NONE for line in lines)]
    cells = dict.fromkeys(cell for row in rows for cell in getattr(row, "cells", ()))
    headings, body = [columns[i][0] for i in kept], [[line[i] for i in kept] for line in lines]
    return Table(caption, headings, body, texts, tuple(cells))


def text(value: str) -> Entry:
    """A name that sorts by itself."""
    return Entry(value, value)


def number(value: float | None, form: format.Form = format.number) -> Entry:
    """A number that sorts by itself; a dash for None."""
    return Entry(form(value), "" if value is None else float(value))


def sortable(words: str, sort: float | None) -> Entry:
    """A text that sorts by a number; what is missing stays last."""
    return Entry(words, "" if sort is None else sort)


def interval(low: float | None, high: float | None, form: format.Form = format.number) -> Entry:
    """An interval that sorts by its low end."""
    return sortable(format.interval(low, high, form), low)
