"""Are our baselines normal? By hand, on walker walk from states at 100,000 steps: 478 of DreamerV3, 708 of SAC."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ccwm.report.baseline import build, compare, is_normal
from ccwm.report.claims import Paper
from ccwm.report.section import Report
from ccwm.training.history import History

from .results_tree import source, write_metrics, write_returns

TASK = "walker_walk"


def trained(root: Path, ends: list[float], *, env_steps: int = 100_000, variant: str = "dreamer") -> None:
    """A curve for each seed with a level last tenth."""
    for seed, end in enumerate(ends):
        history = History()
        for steps, value in {0: 0.0, env_steps // 2: 7.0, env_steps: end}.items():
            history.add_evaluation(steps, steps // 10, [value], [], {})
        write_metrics(root / "results" / "train" / TASK / variant / str(seed), history, env_steps=env_steps)


@pytest.mark.parametrize(
    ("ends", "normal"),
    [  # three quarters of 478 are 358.5, and the interval of x ± 1 is x ± 2.48
        ([361.0, 362.0, 363.0], "yes"),
        ([359.0, 360.0, 361.0], "unknown"),
        ([354.0, 355.0, 356.0], "no"),
        ([500.0, 501.0], "unknown"),  # two seeds
    ],
)
def test_the_interval_against_the_published_return(
    tmp_path: Path, paper: Paper, ends: list[float], normal: str
) -> None:
    trained(tmp_path, ends)
    row = compare(source(tmp_path, seeds=3), paper, paper.normal[0], TASK)
    assert row is not None
    assert (row["normal"], row["published"], row["published_steps"]) == (normal, 478.0, 100_000)
    assert (row["mean"], row["n"], row["env_steps"]) == (sum(ends) / len(ends), len(ends), 100_000)


def test_other_steps_inputs_or_episodes_leave_it_unknown(tmp_path: Path, paper: Paper) -> None:
    trained(tmp_path / "short", [900.0, 901.0, 902.0], env_steps=30_000)
    short = compare(source(tmp_path / "short", seeds=3), paper, paper.normal[0], TASK)
    assert short is not None
    assert (short["normal"], short["published_steps"]) == ("unknown", 100_000)
    trained(tmp_path, [900.0, 901.0, 902.0], env_steps=95_000)
    at = source(tmp_path, seeds=3)
    assert is_normal(at, paper, [TASK]) == "yes"  # within a tenth of the steps
    pixels = compare(at._replace(observation="pixels"), paper, paper.normal[0], TASK)
    assert pixels is not None
    assert pixels["published"] == 602.0
    (tmp_path / "results" / "evaluate" / TASK / "dreamer" / "0").mkdir(parents=True)
    write_returns(tmp_path / "results" / "evaluate" / TASK / "dreamer" / "0", [1.0], best=200.0)
    assert is_normal(source(tmp_path, seeds=3), paper, [TASK]) == "unknown"
    assert is_normal(source(tmp_path, seeds=3), paper, [TASK, "cheetah_run"]) == "unknown"  # it has none there


def test_a_longer_run_is_taken_where_something_is_published(tmp_path: Path, paper: Paper) -> None:
    history = History()
    for steps, value in {0: 0.0, 100_000: 400.0, 150_000: 900.0}.items():
        history.add_evaluation(steps, steps // 10, [value], [], {})
    write_metrics(tmp_path / "results" / "train" / TASK / "dreamer" / "0", history, env_steps=150_000)
    row = compare(source(tmp_path), paper, paper.normal[0], TASK)
    assert row is not None
    assert (row["mean"], row["published_steps"]) == (400.0, 100_000)


def test_the_table_has_a_line_for_each_study_and_task(report: Report) -> None:
    (table,) = build(report)
    assert [entry.text for entry in table.rows[0]][:4] == ["this study", TASK, "dreamer", "unknown"]
    assert len(pd.read_csv(report.folder / "tables" / "baseline.csv")) == 1


def test_sac_is_held_against_sac(tmp_path: Path, paper: Paper) -> None:
    trained(tmp_path, [540.0, 541.0, 542.0], variant="sac")  # three quarters of 708 are 531
    alone = source(tmp_path, variants=["sac"], seeds=3)
    assert is_normal(alone, paper, [TASK]) == "yes"
    rows = [compare(alone, paper, rule, TASK) for rule in paper.normal]
    assert [row and (row["method"], row["published"]) for row in rows] == [None, ("SAC", 708.0)]


def test_without_a_baseline_it_is_unknown(tmp_path: Path, paper: Paper) -> None:
    trained(tmp_path, [900.0, 901.0, 902.0], variant="ccwm")
    assert is_normal(source(tmp_path, variants=["ccwm"], seeds=3), paper, [TASK]) == "unknown"
