"""The files that a search leaves in results/tune/<study>/."""

from __future__ import annotations

import json

import pytest
from ruamel.yaml import YAML
from tuning_project import Project

from ccwm.studies.search import read_search


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
