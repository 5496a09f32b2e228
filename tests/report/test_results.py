from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.errors import UserError
from ccwm.report.results import MEASURED
from ccwm.studies.returns import read_metrics

from .results_tree import results, write_returns


def test_the_stages_are_those_with_results() -> None:
    assert MEASURED == ("collect", "train", "evaluate", "rollout-viz", "transfer")


def test_cells_that_are_there_and_those_that_are_not(tmp_path: Path) -> None:
    found = results(tmp_path, seeds=2)
    there = found.expected("evaluate", variant="ccwm")[1]
    folder = tmp_path / there.results
    folder.mkdir(parents=True)
    write_returns(folder, [1.0, 2.0])
    assert found.cells("evaluate") == [there]
    assert found.cells("evaluate", files=["nothing.csv"]) == []
    assert found.missing("evaluate") == [
        f"evaluate@walker_walk-{name}" for name in ("dreamer-0", "ccwm-0", "dreamer-1")
    ]
    assert found.missing_files("evaluate", ["returns.csv", "nothing.csv"]) == [f"{there}/nothing.csv"]
    loaded = found.load("evaluate", "walker_walk", read_metrics)
    assert {variant: [cell.seed for cell in of] for variant, of in loaded.items()} == {"ccwm": [1]}
    assert loaded["ccwm"][there].return_mean == 1.5


def test_a_broken_file_is_named_with_the_cell_to_run_again(tmp_path: Path) -> None:
    found = results(tmp_path)
    cell = found.expected("evaluate")[0]
    path = tmp_path / cell.results / "metrics.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(UserError, match=rf"{path} lacks the key 'episodes': .*dvc repro --force {cell}"):
        found.read(cell, read_metrics)
