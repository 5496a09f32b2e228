"""Returns over seeds at shared environment steps, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ccwm.cells import Cell
from ccwm.report.summaries import summaries
from ccwm.training.history import History

from .results_tree import source, write_metrics


def test_points_are_of_the_steps_that_all_seeds_have(tmp_path: Path) -> None:
    for seed, steps in enumerate(((0, 100, 200), (0, 200), (0, 200), (0, 200))):
        history = History()
        for at in steps:
            history.add_evaluation(at, at, [(1.0, 2.0, 3.0, 10.0)[seed] * at / 100], [], {})
        write_metrics(tmp_path / "results" / "train" / "walker_walk" / "ccwm" / str(seed), history, env_steps=200)
    record = tmp_path / Cell("train", "walker_walk", "ccwm", 1).record
    record.write_text(json.dumps({"run_id": "abc"}))
    (found,) = summaries([source(tmp_path, tasks=("walker_walk",), seeds=4)])
    assert found.title.startswith("ccwm · walker_walk · 4 seeds")
    assert found.tags["variant"] == "ccwm"
    assert found.runs == ["abc"]
    assert found.points.keys() == {0, 200}
    end = found.points[200]  # of 2, 4, 6 and 20
    assert end["study/return_mean"] == 8.0
    assert end["study/return_iqm"] == 5.0  # without the lowest and the highest quarter
    assert end["study/return_high"] - 8.0 == pytest.approx(8.0 - end["study/return_low"])
    assert end["study/return_high"] == pytest.approx(8.0 + 3.182446 * 8.164966 / 2)  # t(0.975, 3) · sd / √4; Σ² = 200
