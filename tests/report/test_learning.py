from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from ccwm.report.blocks import Panels, Table
from ccwm.report.claims import Paper
from ccwm.report.learning import (
    build,
    curve_area,
    curve_end,
    draw_published,
    learning_table,
    steps_to_reach,
    summarise,
)
from ccwm.report.results import Results
from ccwm.report.section import Report
from ccwm.training.history import History

from .results_tree import chance, one, results, source, write_metrics, write_returns

TASK = "walker_walk"


def curve(*returns: float) -> pd.DataFrame:
    """A point every 100 steps."""
    return pd.DataFrame({"env_steps": [100 * (i + 1) for i in range(len(returns))], "return_mean": returns})


def test_area_end_and_steps_by_hand() -> None:
    frame = curve(0.0, 10.0, 20.0, 60.0)
    assert curve_area(frame) == pytest.approx((5 + 15 + 40) / 3)
    assert curve_area(frame, until=300) == pytest.approx(10.0)  # (5 + 15) / 2
    assert curve_area(frame, until=99) is None
    assert curve_end(frame) == 60.0  # the last tenth of 400 steps starts at 360
    assert curve_end(frame, until=350) == 20.0
    assert steps_to_reach(frame, 10.0) == 200
    assert steps_to_reach(frame, 61.0) == math.inf


def trained(found: Results, seed: int, *returns: float) -> None:
    history = History()
    for i, value in enumerate(returns):
        history.add_evaluation(100 * (i + 1), 10 * (i + 1), [value], [], {})
    write_metrics(found.root / "results" / "train" / TASK / "ccwm" / str(seed), history, env_steps=100 * len(returns))
    folder = found.root / "results" / "evaluate" / TASK / "ccwm" / str(seed)
    folder.mkdir(parents=True)
    write_returns(folder, [returns[-1]], best=2 * 60.0 - chance()["return"].mean())  # so that a score of ½ is 60


def test_steps_to_a_score_are_the_median_over_seeds(tmp_path: Path) -> None:
    found = results(tmp_path, variants=("ccwm",), seeds=3)
    for seed, returns in enumerate([(10.0, 60.5, 60.0), (10.0, 10.0, 70.0), (10.0, 10.0, 10.0)]):
        trained(found, seed, *returns)
    (row,) = summarise(found, TASK, target_score=0.5)
    assert row["target"] == pytest.approx(60.0)
    assert (row["steps"], row["reached"], row["env_steps"]) == (300, 2, 300)  # 200, 300 and never
    table = learning_table(TASK, [row])
    assert [entry.text for entry in table.rows[0][5:7]] == ["300", "2 of 3"]
    (late,) = summarise(found, TASK, target_score=0.7)
    assert (late["steps"], late["reached"]) == (None, 0)  # never for the median seed
    assert learning_table(TASK, [late]).rows[0][5].text == "not reached"


def test_the_section_has_a_figure_and_a_table(report: Report) -> None:
    blocks = build(report)
    assert [picture.file for picture in one(blocks, Panels).shown] == [f"learning-{TASK}"]
    assert len(one(blocks, Table).rows) == 2
    assert len(pd.read_csv(report.folder / "tables" / "learning.csv")) == 2


def test_a_method_is_marked_alike_on_every_task_whatever_is_published_there(tmp_path: Path, paper: Paper) -> None:
    marks = []
    for task in (TASK, "quadruped_run"):  # where nothing of DreamerV3 is published from states
        axes = Figure().add_subplot()
        draw_published(axes, paper, source(tmp_path), task, until=100_000)
        marks.append({str(line.get_label()): line.get_marker() for line in axes.lines})
    names = [f"{method}, published" for method in ("DreamerV3", "SAC", "TD-MPC2")]
    assert marks[0] == dict(zip(names, "Ds^", strict=True))
    assert marks[1] == {name: marks[0][name] for name in names[1:]}
