"""Pictures and importance."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.samplers import RandomSampler
from tuning_project import SPACE

from ccwm.tuning.figures import draw_search, importance


def make_study(trials: int) -> optuna.Study:
    study = optuna.create_study(direction="maximize", sampler=RandomSampler(seed=0))
    study.optimize(lambda trial: float(SPACE.suggest(trial)["truncation.window"]), n_trials=trials)
    return study


def test_importance_is_a_share_of_variance_once_there_are_four_trials() -> None:
    assert importance(make_study(3), SPACE) == {}
    shares = importance(make_study(12), SPACE)
    assert set(shares) == {"truncation.threshold", "truncation.window", "truncation.lookback / truncation.window"}
    assert shares["truncation.window"] > 0.8  # nothing else has any effect
    assert sum(shares.values()) == pytest.approx(1)


def test_every_picture_is_drawn_and_repeats(tmp_path: Path) -> None:
    study = make_study(5)
    names = ["contour.svg", "history.svg", "importance.svg", "parallel.svg", "slice.svg"]
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        draw_search(tmp_path / folder, study, SPACE, measure="auc")
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == names
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
