"""The files that a search leaves in results/tune/<study>/."""

from __future__ import annotations

import json
from pathlib import Path

import optuna
import pytest
from optuna.samplers import RandomSampler
from ruamel.yaml import YAML
from tuning_project import SPACE, Project

from ccwm.studies.search import read_search
from ccwm.tuning.publishing import draw_search, importance


def test_a_value_is_the_mean_over_its_seeds(searched: Project) -> None:
    complete = searched.trials().query("state == 'complete'")
    assert len(complete) >= 2
    assert list(complete["value"]) == pytest.approx(list(complete[["seed 0", "seed 1"]].mean(axis=1)))


def test_the_winner_is_the_best_on_fresh_seeds_and_has_both_values(searched: Project) -> None:
    search = read_search(searched.results)
    best = search.candidates.loc[search.candidates["fresh_mean"].idxmax()]
    winner = search.summary["winner"]
    assert winner is not None
    assert search.winner == best["trial"]
    assert winner["fresh_mean"] == best["fresh seed 100"]
    assert winner["search_mean"] == best["search_mean"]
    assert "default" in set(search.candidates["anchor"])
    written = YAML(typ="safe").load(searched.results / "best.yaml")
    assert written["truncation"]["window"] == winner["point"]["truncation.window"]
    record = json.loads((searched.results / "run.json").read_text())
    assert record["run_id"] == searched.runs("tune")[0].info.run_id


def test_what_is_written_can_be_read_by_name(searched: Project) -> None:
    search = read_search(searched.results)
    assert search.summary["study"] == "tiny"
    assert search.keys == ["truncation.threshold", "truncation.window", "truncation.lookback"]
    assert sum(search.summary["trials"].values()) == len(search.trials) == 3
    assert {"history.svg", "slice.svg", "parallel.svg"} <= {path.name for path in searched.results.iterdir()}


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
