"""What training reports: rows, their files, and the numbers that sum up a curve."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ccwm.training.history import History, mean_height, summarise, summarise_curve, write_history
from ccwm.training.module import Counters


def test_the_mean_height_of_a_curve_is_its_area_over_its_width() -> None:
    # Trapezia (1 + 3)/2 · 2 and (3 + 0)/2 · 4 make 10, over a width of 6
    assert mean_height(np.array([1, 3, 7]), np.array([1.0, 3.0, 0.0])) == pytest.approx(10 / 6)
    assert mean_height(np.array([5]), np.array([2.5])) == 2.5


def test_a_curve_is_summed_up_by_its_last_best_and_mean_return() -> None:
    curve = [{"env_steps": step, "return_mean": value} for step, value in ((0, 2.0), (10, 6.0), (20, 4.0))]
    # (2 + 6)/2 · 10 + (6 + 4)/2 · 10 = 90, over 20
    assert summarise_curve(curve) == {"return_final": 4.0, "return_best": 6.0, "return_auc": 4.5}


def filled(log: list[tuple[dict[str, float], int]]) -> History:
    def record(metrics: Mapping[str, float], env_steps: int) -> None:
        log.append((dict(metrics), env_steps))

    history = History(log=record)
    history.add_evaluation(80, 0, [1.0, 3.0], [True, False], {"retrace_skill_latent": 0.25})
    history.add_losses(80, 4, {"model/kl": 0.5})
    history.add_episode(120, 7.0, 20)
    return history


def test_rows_are_kept_and_logged() -> None:
    log: list[tuple[dict[str, float], int]] = []
    history = filled(log)
    sd = 2**0.5  # of 1 and 3, with n − 1
    point = {"updates": 0, "return_mean": 2.0, "return_sd": pytest.approx(sd), "success_rate": 0.5}
    point["retrace_skill_latent"] = 0.25  # reaches MLflow as evaluation/retrace_skill_latent
    assert history.curve == [{"env_steps": 80, "episodes": 2, **point}]
    assert log == [
        ({f"evaluation/{name}": value for name, value in point.items()}, 80),
        ({"model/kl": 0.5, "updates": 4}, 80),
        ({"episode/return": 7.0, "episode/length": 20}, 120),
    ]


def test_a_resumed_history_has_the_same_rows_and_logs_none_again() -> None:
    log: list[tuple[dict[str, float], int]] = []
    history, resumed = filled([]), History(log=lambda metrics, env_steps: log.append((dict(metrics), env_steps)))
    resumed.load_state_dict(history.state_dict())
    assert resumed.state_dict() == history.state_dict()
    assert log == []


def test_the_files_hold_what_was_measured(tmp_path: Path) -> None:
    history = filled([])
    metrics = summarise(history, Counters(cycle=1, updates=4, env_steps=120, episodes=3))
    write_history(tmp_path / "results", history, metrics)
    assert json.loads((tmp_path / "results" / "metrics.json").read_text()) == {
        "env_steps": 120, "updates": 4, "episodes": 3, "return_final": 2.0, "return_best": 2.0, "return_auc": 2.0,
    }  # fmt: skip
    for name in ("curve", "losses", "episodes"):
        with (tmp_path / "results" / f"{name}.csv").open() as file:
            rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        assert rows == getattr(history, name)
