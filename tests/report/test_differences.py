from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ccwm.cells import cells
from ccwm.report.differences import difference_figure, lines
from ccwm.report.findings import Gap
from ccwm.report.statistics import Estimate

from .results_tree import results, study, write_run, write_train


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Trainings alone, of two variants and two seeds."""
    of = study(seeds=2)
    for cell in cells(of):
        if cell.stage == "train":
            (tmp_path / cell.results).mkdir(parents=True)
            rank = of.variants.index(cell.variant)
            write_train(tmp_path / cell.results, cell, rank, np.random.default_rng([cell.seed, rank]))
            write_run(tmp_path / cell.record, cell)
    return tmp_path


def test_a_variant_has_its_name_its_tasks_and_their_mean_only_of_several() -> None:
    one, other = Estimate(-10.0, 4.0, -20.0, 0.0, 3), Estimate(6.0, None, None, None, 1)
    both = Estimate(-2.0, None, None, None, 1)
    found = lines({"ccwm": Gap({"a": one, "b": other}, both, 1000), "kl": Gap({"a": one}, one, 1000)})
    assert [row.label for row in found] == ["ccwm", "a, 3 seeds", "b, 1 seed", "all tasks", "kl", "a, 3 seeds"]
    assert [row.estimate for row in found] == [None, one, other, both, None, one]


def test_a_dot_stands_at_the_mean_between_the_ends_of_its_interval(trained: Path) -> None:
    figure = difference_figure(results(trained, seeds=2), {})
    assert figure is not None
    (axes,) = figure.axes
    zero, interval, dot = axes.get_lines()
    assert list(zero.get_xdata()) == [0, 0]
    low, high = interval.get_xdata()
    assert 0 < low < high  # the second variant learns faster
    assert (low + high) / 2 == pytest.approx(dot.get_xdata()[0])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ccwm", "walker_walk, 2 seeds"]


def test_without_a_pair_there_is_no_figure(trained: Path) -> None:
    assert difference_figure(results(trained, variants=("dreamer",), seeds=2), {}) is None
