"""What the first sentences say, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.report.claims import Paper
from ccwm.report.findings import findings, gap
from ccwm.training.history import History

from .results_tree import results, source, write_metrics

BASE = [10.0, 20.0, 30.0]


def curves(root: Path, task: str, variant: str, heights: list[float], *, env_steps: int = 1000) -> None:
    for seed, height in enumerate(heights):
        history = History()
        for steps in (0, env_steps):
            history.add_evaluation(steps, steps, [height], [], {})
        write_metrics(root / "results" / "train" / task / variant / str(seed), history, env_steps=env_steps)


def pair(root: Path, task: str, gains: list[float], *, env_steps: int = 1000) -> None:
    curves(root, task, "dreamer", BASE[: len(gains)], env_steps=env_steps)
    curves(root, task, "ccwm", [base + gain for base, gain in zip(BASE, gains, strict=False)], env_steps=env_steps)


def test_the_gap_is_paired_on_each_task_and_over_all(tmp_path: Path) -> None:
    pair(tmp_path, "walker_walk", [-4.0, -5.0, -6.0])
    pair(tmp_path, "cheetah_run", [-2.0, -1.0, 0.0])
    found = gap(results(tmp_path, tasks=("walker_walk", "cheetah_run", "walker_run"), seeds=3), "ccwm")
    assert found is not None
    assert {task: of.mean for task, of in found.tasks.items()} == {"walker_walk": -5.0, "cheetah_run": -1.0}
    # ½ √(1/3 + 1/3) = 0.40825; (2/3)² / (2 · (1/3)² / 2) = 4 degrees of freedom, t = 2.77645: −3 ± 1.13348
    assert found.overall[:4] == (-3.0, None, pytest.approx(-4.13348, abs=1e-5), pytest.approx(-1.86652, abs=1e-5))
    assert gap(results(tmp_path, variants=("dreamer", "ccwm-l2"), seeds=3), "ccwm-l2") is None


def test_every_seed_of_a_task_counts_though_another_task_has_fewer(tmp_path: Path) -> None:
    pair(tmp_path, "walker_walk", [-4.0, -5.0, -6.0])
    pair(tmp_path, "cheetah_run", [-2.0, -1.0])
    (said,) = findings([source(tmp_path, tasks=("walker_walk", "cheetah_run"), seeds=3)], None)
    assert "3 seeds" in said  # a task of two is left out as long as another has three
    curves(tmp_path, "walker_walk", "dreamer", [*BASE, 0.0])
    curves(tmp_path, "walker_walk", "ccwm", [6.0, 15.0, 24.0, 11.0])  # the fourth seed gains 11: the mean is −1
    pair(tmp_path, "cheetah_run", [-2.0, -1.0, 0.0])
    (said,) = findings([source(tmp_path, tasks=("walker_walk", "cheetah_run"), seeds=4)], None)
    assert "3 to 4 seeds: over 2 tasks ccwm learned with no clear difference" in said
    assert "−1.00 points" in said


def test_a_negative_result_is_said_first_and_plainly(tmp_path: Path) -> None:
    pair(tmp_path, "walker_walk", [-4.0, -5.0, -6.0])
    pair(tmp_path, "cheetah_run", [-4.0, -5.0, -6.0])
    pair(tmp_path, "walker_run", [-4.0, 0.0, 4.0])
    names = {"tasks": ("walker_run", "walker_walk", "cheetah_run"), "seeds": 3}
    (said,) = findings([source(tmp_path, **names)], None)
    assert said.startswith("From states at 1,000 environment steps, 3 seeds: over 3 tasks ccwm learned")
    assert "behind on 2 of 3 tasks and no clear difference on 1" in said
    assert "−3.33" in said  # (−5 − 5 + 0) / 3


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        ([4.0, 5.0, 6.0], "learned faster than dreamer"),
        ([-9.0], "no clear difference from dreamer"),  # one seed decides nothing
    ],
)
def test_the_words_follow_the_interval(tmp_path: Path, gains: list[float], words: str) -> None:
    pair(tmp_path, "walker_walk", gains)
    (said,) = findings([source(tmp_path, observation="pixels", seeds=3)], None)
    assert words in said
    assert said.startswith("From pixels")


def test_the_largest_study_is_the_one_that_is_told(tmp_path: Path, paper: Paper) -> None:
    pair(tmp_path / "small", "walker_walk", [4.0, 5.0, 6.0])
    pair(tmp_path / "large", "walker_walk", [-4.0, -5.0, -6.0], env_steps=100_000)
    sources = [source(tmp_path / name, name=name, seeds=3) for name in ("small", "large")]
    said = findings(sources, paper)
    assert "100,000" in said[0]
    assert "more slowly" in said[0]
    assert "below it on 1 task" in said[1]  # dreamer's 20 beside DreamerV3's 478
    assert findings([source(tmp_path / "empty")], paper) == []


def test_few_seeds_are_told_of_only_where_nothing_has_more(tmp_path: Path) -> None:
    pair(tmp_path / "small", "walker_walk", [4.0, 5.0, 6.0])
    pair(tmp_path / "large", "walker_walk", [-4.0], env_steps=100_000)
    sources = [source(tmp_path / name, name=name, seeds=3) for name in ("small", "large")]
    assert "faster" in findings(sources, None)[0]
    assert "100,000" in findings(sources[1:], None)[0]
    pair(tmp_path / "small", "cheetah_run", [-9.0, -9.0])  # a third seed is still to run
    (said,) = findings([source(tmp_path / "small", tasks=("walker_walk", "cheetah_run"), seeds=3)], None)
    assert "on walker_walk." in said
