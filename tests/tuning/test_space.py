"""The space: every draw is allowed, and every point can be asked for again."""

from __future__ import annotations

import optuna
from optuna.samplers import RandomSampler
from optuna.trial import FixedTrial
from tuning_project import SPACE


def test_every_draw_keeps_the_lookback_within_the_window_and_reaches_both_ends() -> None:
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    points = [SPACE.suggest(study.ask()) for _ in range(500)]
    assert all(0 <= point["truncation.lookback"] <= point["truncation.window"] for point in points)
    assert {point["truncation.lookback"] for point in points} == set(range(6))
    widest = [point["truncation.lookback"] for point in points if point["truncation.window"] == 2]
    assert {lookback: widest.count(lookback) > 20 for lookback in range(3)} == dict.fromkeys(range(3), True)


def test_a_point_can_be_asked_for_again() -> None:
    for window in range(2, 6):
        for lookback in range(window + 1):
            point = {"truncation.threshold": 0.1, "truncation.window": window, "truncation.lookback": lookback}
            assert SPACE.suggest(FixedTrial(SPACE.params(point))) == point


def test_a_value_outside_is_moved_and_null_means_the_most() -> None:
    point, moved = SPACE.clip({"truncation.threshold": 0.9, "truncation.window": 10, "truncation.lookback": None})
    assert point == {"truncation.threshold": 0.5, "truncation.window": 5, "truncation.lookback": 5}
    assert moved == ["truncation.threshold: 0.9 → 0.5", "truncation.window: 10 → 5"]


def test_a_grid_has_every_combination_once_and_none_that_is_not_allowed() -> None:
    points = SPACE.grid(3)
    # Thresholds 0.02, 0.1, 0.5; windows 2, 4 (3.5 rounds up), 5; lookbacks {0, 1, 2}, {0, 2, 4}, {0, 3, 5}.
    assert len(points) == 3 * 3 * 3
    assert sorted({point["truncation.threshold"] for point in points}) == [0.02, 0.1, 0.5]
    pairs = {(point["truncation.window"], point["truncation.lookback"]) for point in points}
    assert pairs == {(2, 0), (2, 1), (2, 2), (4, 0), (4, 2), (4, 4), (5, 0), (5, 3), (5, 5)}
    assert len(SPACE.grid(100)) == 100 * sum(window + 1 for window in range(2, 6))
