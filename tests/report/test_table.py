from __future__ import annotations

from typing import NamedTuple

from ccwm.cells import Cell
from ccwm.report.blocks import Entry
from ccwm.report.table import interval, number, sortable, table, text


class Row(NamedTuple):
    variant: str
    value: float | None
    cells: tuple[Cell, ...] = ()


def test_columns_that_nobody_measured_are_left_out_and_cells_are_gathered() -> None:
    cell = Cell("train", "walker_walk", "ccwm", 0)
    got = table(
        "A caption.",
        [Row("ccwm", 1.5, (cell,)), Row("dreamer", None, (cell,))],
        [
            ("Variant", lambda row: text(row.variant)),
            ("A", lambda row: number(row.value)),
            ("B", lambda _: number(None)),
        ],
    )
    assert got.headings == ["Variant", "A"]
    assert [[entry.text for entry in row] for row in got.rows] == [["ccwm", "1.50"], ["dreamer", "–"]]
    assert got.cells == (cell,)


def test_entries_sort_by_their_number_and_what_is_missing_stays_last() -> None:
    assert number(2.0) == Entry("2.00", 2.0)
    assert number(None).sort == ""
    assert interval(1.0, 3.0) == Entry("1.00 to 3.00", 1.0)
    assert sortable("2 of 3", 2) == Entry("2 of 3", 2)
