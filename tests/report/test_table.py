from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from ccwm.cells import Cell
from ccwm.report import format
from ccwm.report.blocks import Entry
from ccwm.report.table import Column, averaged, entry, rows_of, table

FIRST, SECOND = (Cell("train", "walker_walk", "ccwm", seed) for seed in (0, 1))


def test_columns_that_nobody_measured_are_left_out_and_cells_are_gathered() -> None:
    rows = [{"variant": "ccwm", "value": 1.5, "cells": (FIRST,)}, {"variant": "dreamer", "value": None}]
    got = table("A caption.", rows, [Column("Variant", "variant"), Column("A", "value"), Column("B", "other")])
    assert got.headings == ["Variant", "A"]
    assert [[entry.text for entry in row] for row in got.rows] == [["ccwm", "1.50"], ["dreamer", "–"]]
    assert got.cells == (FIRST,)


def test_entries_sort_by_their_first_value_and_what_is_missing_stays_last() -> None:
    row = {"low": 1.0, "high": 3.0, "reached": 2, "nan": math.nan, "name": "x"}
    assert entry(row, Column("", ("low", "high"), format.interval)) == Entry("1.00 to 3.00", 1.0)
    assert entry(row, Column("", "reached")) == Entry("2", 2)
    assert entry(row, Column("", "name", style="id")) == Entry("x", "x", style="id")
    assert entry(row, Column("", ("nan", "low"), "{} {}".format)) == Entry("None 1.0", "")
    assert entry(row, Column("", "nan")) == entry(row, Column("", "absent")) == Entry("–", "")


def test_rows_are_the_lines_of_every_cell_and_seeds_are_averaged() -> None:
    class Metrics(NamedTuple):
        value: float | None
        rule: str

    rows = rows_of({"ccwm": {FIRST: Metrics(1.0, "prose"), SECOND: Metrics(None, "letter")}})
    assert [(row["seed"], row["value"]) for row in rows] == [(0, 1.0), (1, None)]
    (row,) = averaged(rows, "variant", rule=len)
    assert row == {"variant": "ccwm", "cells": (FIRST, SECOND), "value": 1.0, "rule": 2, "task": "walker_walk"}
    assert averaged(rows, "variant")[0]["rule"] == "prose, letter"
    assert [row["value"] for row in averaged(rows, "rule")] == [1.0, None]
    frame = pd.DataFrame({"value": [3.0, 5.0]})
    assert [row["value"] for row in rows_of({"ccwm": {FIRST: frame}})] == [3.0, 5.0]
