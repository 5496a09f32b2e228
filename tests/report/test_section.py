from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from ccwm.cells import Cell
from ccwm.report.blocks import Heading, Words
from ccwm.report.section import Report


def test_tables_are_written_unrounded_with_their_cells(report: Report) -> None:
    cells = tuple(Cell("train", "walker_walk", "ccwm", seed) for seed in (0, 1))
    report.csv("some", [{"value": 1 / 3, "cells": cells}])
    report.csv("none", [])
    written = pd.read_csv(report.folder / "tables" / "some.csv")
    assert written["value"][0] == 1 / 3
    assert written["cells"][0] == "train@walker_walk-ccwm-0 train@walker_walk-ccwm-1"
    assert not (report.folder / "tables" / "none.csv").exists()


def test_tasks_are_named_where_there_are_several(
    report: Report, tmp_path: Path, make_report: Callable[..., Report]
) -> None:
    assert report.by_task(lambda task: [Words(task)]) == [Words("walker_walk")]
    several = make_report(tmp_path, tasks=("a", "b"))
    assert several.by_task(lambda task: [Words("x")] if task == "b" else []) == [Heading("b"), Words("x")]
