from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ccwm.report.claims import load_claims
from ccwm.report.curves import still_better
from ccwm.report.learning import curve_area, curve_end, learnings, steps_to_reach
from ccwm.report.results import Cell, Results
from ccwm.report.summaries import aggregates, evaluations
from ccwm.report.tables import aggregate_table, evaluation_table, learning_table

PAPER = load_claims(Path(__file__).parents[2] / "claims.yaml")


def trained(root: Path, returns: list[float], *, seed: int = 0, task: str = "walker_walk") -> Cell:
    """A curve with a point every 100 steps."""
    cell = Cell("train", task, "ccwm", seed, root / "train" / task / "ccwm" / str(seed))
    cell.folder.mkdir(parents=True)
    steps = [100 * (i + 1) for i in range(len(returns))]
    (cell.folder / "metrics.json").write_text(json.dumps({"env_steps": steps[-1]}))
    pd.DataFrame({"env_steps": steps, "return_mean": returns}).to_csv(cell.folder / "curve.csv", index=False)
    return cell


def evaluated(
    root: Path, seed: int, mean: float, *, task: str = "walker_walk", score: float | None = None, best: float = 110.0
) -> None:
    folder = root / "evaluate" / task / "ccwm" / str(seed)
    folder.mkdir(parents=True)
    metrics = {"return_mean": mean, "random_mean": 10.0, "best_possible": best, "score": score, "episodes": 3}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    episodes = [{"seed": i, "policy": "agent", "return": mean + i - 1} for i in range(3)]
    pd.DataFrame(episodes).to_csv(folder / "returns.csv", index=False)


def test_area_end_and_steps_by_hand(tmp_path: Path) -> None:
    cell = trained(tmp_path, [0.0, 10.0, 20.0, 60.0])
    assert curve_area(cell) == pytest.approx((5 + 15 + 40) / 3)
    assert curve_area(cell, until=300) == pytest.approx(10.0)  # (5 + 15) / 2
    assert curve_area(cell, until=99) is None
    assert curve_end(cell) == 60.0  # the last tenth of 400 steps starts at 360
    assert curve_end(cell, until=350) == 20.0
    assert steps_to_reach(cell, 10.0) == 200
    assert steps_to_reach(cell, 61.0) == np.inf


def test_steps_to_a_score_are_the_median_over_seeds(tmp_path: Path) -> None:
    for seed, returns in enumerate([[10.0, 60.0, 60.0], [10.0, 10.0, 70.0], [10.0, 10.0, 10.0]]):
        trained(tmp_path, returns, seed=seed)
        evaluated(tmp_path, seed, returns[-1])
    study = Results(tmp_path, ["walker_walk"], ["ccwm"], [0, 1, 2])
    (row,) = learnings(study, "walker_walk", target_score=0.5)
    assert row.target == 60.0  # half of the way from 10 to 110
    assert (row.steps, row.reached) == (300, 2)  # 200, 300 and never
    assert [entry.text for entry in learning_table("walker_walk", [row]).rows[0][5:7]] == ["300", "2 of 3"]
    (late,) = learnings(study, "walker_walk", target_score=0.6)
    assert (late.steps, late.reached) == (None, 1)  # never for the median seed
    assert learning_table("walker_walk", [late]).rows[0][5].text == "not reached"


def test_seeds_have_an_interquartile_mean_with_an_interval(tmp_path: Path) -> None:
    for seed, mean in enumerate([1.0, 2.0, 3.0, 100.0]):
        evaluated(tmp_path, seed, mean)
    (row,) = evaluations(Results(tmp_path, ["walker_walk"], ["ccwm"], [0, 1, 2, 3]), "walker_walk")
    assert row.iqm == 2.5  # of 2 and 3
    assert row.iqm_low is not None
    assert row.iqm_high is not None
    assert row.iqm_low < 2.5 < row.iqm_high
    (one,) = evaluations(Results(tmp_path, ["walker_walk"], ["ccwm"], [0]), "walker_walk")
    assert one.iqm == 1.0  # over the episodes 0, 1 and 2, of which 3 // 4 = 0 are cut
    assert (one.iqm_low, one.iqm_high) == (0.0, 2.0)


def test_scores_of_all_tasks_together(tmp_path: Path) -> None:
    for task, scores in (("walker_walk", [0.1, 0.2]), ("finger_spin", [0.4, 0.9])):
        for seed, score in enumerate(scores):
            evaluated(tmp_path, seed, 50.0, task=task, score=score)
    study = Results(tmp_path, ["walker_walk", "finger_spin", "gym:Unscored-v0"], ["ccwm"], [0, 1])
    evaluated(tmp_path, 0, 50.0, task="gym:Unscored-v0")
    (row,) = aggregates(study)
    assert (row.tasks, row.iqm, len(row.cells)) == (2, pytest.approx(0.3), 4)  # of 0.2 and 0.4
    assert "Score over 2 tasks" in aggregate_table([row]).caption
    assert aggregates(Results(tmp_path, ["walker_walk"], ["ccwm"], [0, 1])) == []


def test_quoted_returns_are_marked_and_their_absence_is_said(tmp_path: Path) -> None:
    evaluated(tmp_path, 0, 50.0, best=1000.0)
    evaluated(tmp_path, 0, 50.0, task="quadruped_run")
    evaluated(tmp_path, 0, 50.0, task="walker_run", best=200.0)
    study = Results(tmp_path, ["walker_walk", "quadruped_run", "walker_run"], ["ccwm"], [0])
    table = evaluation_table("walker_walk", evaluations(study, "walker_walk"), quoted=PAPER.quoted)
    assert [[entry.text for entry in row[:2]] for row in table.rows[-2:]] == [
        ["D4PG, quoted", "968.3"],
        ["A3C, quoted", "311.0"],
    ]
    assert "Quoted, not measured here: D4PG from pixels at 10⁸ steps and A3C from states at 10⁸ steps" in table.caption
    none = evaluation_table("quadruped_run", evaluations(study, "quadruped_run"), quoted=PAPER.quoted)
    assert "Nothing is quoted for this task from D4PG and A3C." in none.caption
    assert len(none.rows) == 2  # ccwm and the random policy
    shorter = evaluation_table("walker_run", evaluations(study, "walker_run"), quoted=PAPER.quoted)
    assert "What D4PG and A3C published is of episodes with a best possible return of 1,000" in shorter.caption
    assert len(shorter.rows) == 2


def test_share_of_episodes_still_better() -> None:
    frames = [pd.DataFrame({"last_frame": [0, 2]}), pd.DataFrame({"last_frame": [2, 3]})]
    assert still_better(frames, "last_frame", 3).tolist() == [1.0, 0.75, 0.75, 0.25]
