"""The section on tuning: both numbers of the winner, what is chance, and figures from the files alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ccwm.report import build_report
from ccwm.report.searches import read_search
from ccwm.report.tuning import tuning_section
from ccwm.report.tuning_figures import search_figures
from ccwm.report.tuning_words import search_words

KEYS = ["truncation.threshold", "truncation.window", "truncation.lookback"]
TRIALS = [
    # number, anchor, state, value, η, S, τ
    (0, "default", "complete", 100.0, 0.10, 10, 5),
    (1, "paper", "complete", 101.0, 0.10, 10, 6),
    (2, "", "complete", 120.0, 0.21, 7, 3),
    (3, "", "pruned", 60.0, 0.45, 3, 3),
    (4, "", "complete", 90.0, 0.03, 4, 0),
    (5, "", "failed", None, 0.02, 9, 9),
    (6, "", "complete", 118.0, 0.30, 8, 2),
]
FRESH = {0: [98.0, 102.0], 2: [104.0, 108.0], 6: [101.0, 103.0]}  # by seed 100 and 101


def write_study(results: Path, **changes: Any) -> Path:
    folder = results / "tune" / "truncation"
    folder.mkdir(parents=True)
    columns = ["trial", "anchor", "state", "value", *KEYS]
    trials = pd.DataFrame(TRIALS, columns=columns)
    trials.to_csv(folder / "trials.csv", index=False)
    candidates = trials[trials["trial"].isin(list(FRESH))].drop(columns=["state", "value"])
    candidates["winner"] = candidates["trial"] == 2
    candidates["search_mean"] = [100.0, 120.0, 118.0]
    candidates["search_sd"] = [2.0, 3.0, 4.0]
    candidates["fresh_mean"] = [100.0, 106.0, 102.0]
    candidates["fresh_sd"] = [2.83, 2.83, 1.41]
    for place, seed in enumerate((100, 101)):
        candidates[f"fresh seed {seed}"] = [FRESH[number][place] for number in candidates["trial"]]
    candidates.to_csv(folder / "candidates.csv", index=False)
    summary = {
        "study": "truncation",
        "task": "maze_one_way",
        "variant": "ccwm-truncated",
        "overrides": {},
        "measure": "auc",
        "measure_title": "mean height of the learning curve",
        "sampler": "tpe",
        "pruner": "median",
        "seeds": [0, 1],
        "fresh_seeds": [100, 101],
        "space": {
            KEYS[0]: {"kind": "float", "low": 0.02, "high": 0.5, "log": True},
            KEYS[1]: {"kind": "int", "low": 2, "high": 11, "log": False},
            KEYS[2]: {"kind": "int", "low": 0, "high": KEYS[1], "log": False},
        },
        "trials": {"complete": 5, "pruned": 1, "failed": 1, "running": 0},
        "commits": ["c0ffee"],
        "importance": {KEYS[0]: 0.6, KEYS[1]: 0.3, f"{KEYS[2]} / {KEYS[1]}": 0.1},
        "winner": {
            "trial": 2,
            "search_mean": 120.0,
            "fresh_mean": 106.0,
            "point": {KEYS[0]: 0.21, KEYS[1]: 7, KEYS[2]: 3},
        },
        **changes,
    }
    (folder / "study.json").write_text(json.dumps(summary))
    (folder / "run.json").write_text(json.dumps({"run_id": "ab" * 16}))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_study(tmp_path / "results")


def test_the_winner_s_curse_is_visible(folder: Path) -> None:
    told = " ".join(search_words(read_search(folder)))
    assert "7 trials (5 complete, 1 pruned, 1 failed)" in told
    assert "Winner: trial 2 with η = 0.21, S = 7 and τ = 3." in told
    assert "It has 120.0 on the seeds that it was chosen on, which flatter it, and 106.0 on seeds 100 and 101" in told
    # Paired by seed: 104 − 98 and 108 − 102 are both 6, so that the interval has no width.
    assert "+6.00 (95% interval 6.00 to 6.00), a clear difference" in told


def test_a_difference_that_may_be_chance_is_called_so(folder: Path) -> None:
    table = pd.read_csv(folder / "candidates.csv")
    table.loc[table["trial"] == 2, "fresh seed 101"] = 90.0  # + 6 and − 12: mean − 3, wide
    table.to_csv(folder / "candidates.csv", index=False)
    assert "no clear difference: it may be chance" in search_words(read_search(folder))[2]


def test_a_search_that_found_nothing_says_so(tmp_path: Path) -> None:
    point = {KEYS[0]: 0.1, KEYS[1]: 10, KEYS[2]: 5}
    winner = {"trial": 0, "search_mean": 100.0, "fresh_mean": 100.0, "point": point}
    found = search_words(read_search(write_study(tmp_path / "default", winner=winner)))
    assert "no other candidate was better on fresh seeds" in found[2]
    open_end = search_words(read_search(write_study(tmp_path / "open", winner=None)))
    assert "No winner is named" in open_end[1]


def test_every_figure_is_drawn_the_same_way_twice(folder: Path, tmp_path: Path) -> None:
    drawn = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        ((section),) = tuning_section(folder.parents[1], tmp_path / name)
        drawn.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
        assert [figure["what"] for figure in section["figures"]] == [
            "history",
            "slice",
            "contour",
            "importance",
            "parallel",
        ]
    assert drawn[0] == drawn[1]


def test_few_trials_and_choices_draw_what_they_can(folder: Path) -> None:
    trials = pd.read_csv(folder / "trials.csv")
    trials["retrace.loss"] = "l2"
    trials[trials["trial"].isin([0, 3])].to_csv(folder / "trials.csv", index=False)
    summary = json.loads((folder / "study.json").read_text())
    summary["space"]["retrace.loss"] = {"kind": "choice", "choices": ["l2", "bisimulation"]}
    (folder / "study.json").write_text(json.dumps({**summary, "importance": {}, "winner": None}))
    assert list(search_figures(read_search(folder))) == ["history", "slice", "parallel"]


def test_the_page_has_a_section_only_where_there_was_a_search(tree: Path, tmp_path: Path, built: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(tree, results)
    write_study(results)
    names: dict[str, Any] = {"tasks": ["walker_walk"], "variants": ["dreamer", "ccwm"]}
    page = build_report(results, tmp_path / "out", **names, seeds=[0], title="T", colours={}).read_text("utf-8")
    assert '<section id="tuning">' in page
    assert "2, winner" in page
    assert "ab" * 16 in page
    assert "## Tuning" in (tmp_path / "out" / "report.md").read_text("utf-8")
    assert '<section id="tuning">' not in (built / "index.html").read_text("utf-8")
