from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from ccwm.cells import Cell
from ccwm.report.blocks import Table
from ccwm.report.runs import build, caveats, load, public_store

from .results_tree import results, write_run


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("", ""),
        ("sqlite:////home/someone/mlflow.db", "sqlite: mlflow.db"),
        ("postgresql+psycopg://me:secret@db.example/runs", "postgresql: runs"),
        ("https://me:secret@tracking.example:5000/path", "tracking.example:5000"),
    ],
)
def test_store_is_shown_without_secrets_and_folders(uri: str, shown: str) -> None:
    assert public_store(uri) == shown


def test_every_record_is_a_line_with_the_name_of_its_cell(tree: Path, tmp_path: Path) -> None:
    blocks = build(results(tree), tmp_path)
    cost, runs = [block for block in blocks if isinstance(block, Table)]
    assert len(cost.rows) == len(runs.rows) == 9
    assert runs.rows[0][0].text == "collect@walker_walk-0"
    assert [entry.text for entry in cost.rows[1]] == [
        *("train", "walker_walk", "dreamer", "cpu", "7 min 12 s", "97.25", "8.12", "812.5", "1"),
    ]
    written = pd.read_csv(tmp_path / "runs.csv").set_index("name")
    assert written.loc["train@walker_walk-ccwm-0", "updates_per_second"] == 8.125


def test_a_record_may_be_missing_or_broken(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree / "results" / "evaluate", tmp_path / "results" / "evaluate")
    first, second = (Cell("evaluate", "walker_walk", variant, 0) for variant in ("dreamer", "ccwm"))
    (tmp_path / first.record).unlink()
    write_run(tmp_path / second.record, second, dirty="true", seconds="long", commit="other")
    (run,) = load(results(tmp_path))
    assert (run["dirty"], run["seconds"], run["name"]) == (True, None, str(second))
    assert len(caveats([run, run | {"commit": "another", "dirty": False}])) == 2
    (tmp_path / second.record).write_text("{")
    (said,) = build(results(tmp_path), tmp_path)
    assert said.style == "missing"
