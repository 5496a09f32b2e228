from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ccwm.report.blocks import Table
from ccwm.report.claims import Paper
from ccwm.report.evaluation import (
    aggregate,
    best_possible,
    build,
    evaluation_table,
    random_level,
    return_difference,
    summarise,
)
from ccwm.report.results import Results
from ccwm.report.section import Report

from .results_tree import chance, results, texts, write_returns

TASK = "walker_walk"


def evaluated(
    found: Results,
    *totals: float,
    seed: int = 0,
    task: str = TASK,
    best: float | None = 1000.0,
    variant: str = "ccwm",
) -> None:
    """A variant's returns of one seed."""
    folder = found.root / "results" / "evaluate" / task / variant / str(seed)
    folder.mkdir(parents=True)
    write_returns(folder, list(totals), best=best)


def test_seeds_have_a_mean_and_an_interquartile_mean(tmp_path: Path) -> None:
    found = results(tmp_path, variants=("ccwm",), seeds=4)
    for seed, mean in enumerate([1.0, 2.0, 3.0, 100.0]):
        evaluated(found, mean - 1, mean, mean + 1, seed=seed)
    (row,) = summarise(found, TASK)
    assert (row["mean"], row["n"], row["iqm"]) == (26.5, 4, 2.5)  # the IQM is of 2 and 3
    assert row["iqm_low"] < 2.5 < row["iqm_high"]
    (one,) = summarise(results(tmp_path, variants=("ccwm",)), TASK)
    assert (one["mean"], one["sd"], one["iqm"]) == (1.0, 1.0, 1.0)  # over the episodes 0, 1 and 2: 3 // 4 = 0 are cut
    assert (one["iqm_low"], one["iqm_high"]) == (0.0, 2.0)


def test_scores_of_all_tasks_together(tmp_path: Path) -> None:
    found = results(tmp_path, tasks=(TASK, "finger_spin", "gym:Unscored-v0"), variants=("ccwm",), seeds=2)
    level = chance()["return"].mean()
    for task, scores in ((TASK, [0.1, 0.2]), ("finger_spin", [0.4, 0.9])):
        for seed, score in enumerate(scores):
            evaluated(found, level + score * (1000 - level), seed=seed, task=task)
    evaluated(found, 50.0, task="gym:Unscored-v0", best=None)
    (row,) = aggregate(found)
    assert (row["tasks"], row["iqm"], len(row["cells"])) == (2, pytest.approx(0.3), 4)  # of 0.2 and 0.4
    assert aggregate(results(tmp_path, variants=("ccwm",), seeds=2)) == []


def test_a_variant_that_has_hardly_run_takes_no_task_away(tmp_path: Path) -> None:
    tasks, variants = (TASK, "finger_spin", "hopper_stand"), ("dreamer", "ccwm", "ccwm-truncated")
    found = results(tmp_path, tasks=tasks, variants=variants)
    for task in tasks:
        for variant in ("dreamer", "ccwm"):
            evaluated(found, 500.0, task=task, variant=variant)
    evaluated(found, 500.0, variant="ccwm-truncated")
    assert [(row["variant"], row["tasks"]) for row in aggregate(found)] == [("dreamer", 3), ("ccwm", 3)]  # 6 > 1 · 3
    again = results(tmp_path, tasks=tasks, variants=variants)  # what was read is remembered
    for task in tasks[1:]:
        evaluated(again, 500.0, task=task, variant="ccwm-truncated")
    assert [row["variant"] for row in aggregate(again)] == [*variants]


def test_quoted_returns_stand_beside_those_of_the_same_episodes(tmp_path: Path, paper: Paper) -> None:
    tasks = (TASK, "quadruped_run", "walker_run")
    found = results(tmp_path, tasks=tasks, variants=("ccwm",))
    for task, best in zip(tasks, (1000.0, 1000.0, 200.0), strict=True):
        evaluated(found, 50.0, task=task, best=best)
    lines = {task: evaluation_table(task, summarise(found, task), quoted=paper.quoted).rows for task in tasks}
    assert [[entry.text for entry in row[:2]] for row in lines[TASK][-2:]] == [
        ["D4PG, quoted", "968.3"],
        ["A3C, quoted", "311.0"],
    ]
    assert [len(lines[task]) for task in tasks] == [4, 2, 2]  # the others: ccwm and the random policy


def test_levels_are_those_of_the_random_policy_and_of_the_best_episode(tree: Path) -> None:
    found = results(tree)
    assert random_level(found, TASK) == pytest.approx(chance()["return"].mean())
    assert best_possible(found, TASK) == 1000.0
    assert random_level(found, "finger_spin") is None


def test_one_seed_is_paired_by_episode_and_several_by_seed(tree: Path, tmp_path: Path) -> None:
    difference, pairs = return_difference(results(tree), TASK, "ccwm") or (None, "")
    by_variant = [
        pd.read_csv(tree / "results" / "evaluate" / TASK / name / "0" / "returns.csv").query("policy == 'agent'")
        for name in ("ccwm", "dreamer")
    ]
    assert pairs == "episodes"
    assert difference is not None
    assert (difference.n, difference.mean) == (
        10,
        pytest.approx((by_variant[0]["return"] - by_variant[1]["return"]).mean()),
    )
    assert return_difference(results(tmp_path), TASK, "ccwm") is None


def test_the_section_shows_and_writes_the_numbers(report: Report) -> None:
    (table,) = build(report)
    assert isinstance(table, Table)
    written = pd.read_csv(report.folder / "tables" / "evaluation.csv").set_index("variant")
    assert written.loc["ccwm", "cells"] == f"evaluate@{TASK}-ccwm-0"
    assert texts(table, "ccwm")[0][3] == f"{written.loc['ccwm', 'iqm']:.1f}"
    assert [str(cell) for cell in table.cells] == [f"evaluate@{TASK}-{name}-0" for name in ("dreamer", "ccwm")]


def test_nothing_evaluated_is_no_section(make_report: Callable[..., Report], tmp_path: Path) -> None:
    assert build(make_report(tmp_path)) == []
