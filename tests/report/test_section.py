from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from ccwm.cells import Cell
from ccwm.report.blocks import Heading, Legend, Words
from ccwm.report.section import Report, by_task


def test_tables_are_written_unrounded_with_their_cells(report: Report) -> None:
    cells = tuple(Cell("train", "walker_walk", "ccwm", seed) for seed in (0, 1))
    report.csv("some", [{"value": 1 / 3, "cells": cells}])
    report.csv("some", [{"value": 2.0, "cells": ()}])
    report.csv("none", [])
    written = pd.read_csv(report.folder / "tables" / "some.csv")
    assert written["value"].tolist() == [1 / 3, 2.0]
    assert written["cells"][0] == "train@walker_walk-ccwm-0 train@walker_walk-ccwm-1"
    assert not (report.folder / "tables" / "none.csv").exists()


def test_tasks_are_named_where_there_are_several(
    report: Report, tmp_path: Path, make_report: Callable[..., Report]
) -> None:
    assert by_task(lambda _, task: [Words(task)])(report) == [Words("walker_walk")]
    several = make_report(tmp_path, tasks=("a", "b"))
    build = by_task(lambda _, task: [Words("x")] if task == "b" else [], intro="losses", legend=True)
    assert build(several)[1:] == [Legend(several.colours), Heading("b"), Words("x")]
    assert by_task(lambda _, task: [], intro="losses", legend=True)(several) == []
