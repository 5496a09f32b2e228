"""The section on tuning: both numbers of the winner, and what may be chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ccwm.report.blocks import Panels, Table
from ccwm.report.section import Report
from ccwm.report.tuning import against_default, build, candidates_table, draw_study, search_words
from ccwm.studies.search import read_search

from .results_tree import one
from .search_files import KEYS, write_study


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_study(tmp_path)


def test_the_winner_s_curse_is_visible(folder: Path) -> None:
    search = read_search(folder)
    said = " ".join(search_words(search))
    for number in ("7 trials", "120.0", "106.0", "η = 0.21, S = 7 and τ = 3", "seeds 100 and 101"):
        assert number in said
    difference = against_default(search)
    assert difference is not None  # paired by seed: 104 − 98 and 108 − 102 are both 6, so the interval has no width
    assert (difference.mean, difference.low, difference.high) == (6.0, 6.0, 6.0)
    winner = next(row for row in candidates_table(search).rows if row[0].sort == 2)
    assert [entry.text for entry in winner] == [
        *("2, winner", "0.21", "7", "3", "120.0 ± 3.00", "106.0 ± 2.83", "−14.00"),
    ]


def test_a_difference_that_may_be_chance_is_called_so(folder: Path) -> None:
    clear = search_words(read_search(folder))[2]
    table = pd.read_csv(folder / "candidates.csv")
    table.loc[table["trial"] == 2, "fresh seed 101"] = 90.0  # + 6 and − 12: mean − 3, wide
    table.to_csv(folder / "candidates.csv", index=False)
    assert "chance" in search_words(read_search(folder))[2]
    assert "chance" not in clear


def test_a_search_that_found_nothing_says_so(tmp_path: Path) -> None:
    point = {KEYS[0]: 0.1, KEYS[1]: 10, KEYS[2]: 5}
    winner = {"trial": 0, "search_mean": 100.0, "fresh_mean": 100.0, "point": point}
    found = search_words(read_search(write_study(tmp_path / "default", winner=winner)))
    assert "default settings win" in found[2]
    assert len(search_words(read_search(write_study(tmp_path / "open", winner=None)))) == 2


def test_the_section_is_there_where_there_was_a_search(
    folder: Path, tmp_path: Path, report: Report, make_report: Callable[..., Report]
) -> None:
    blocks = build(make_report(tmp_path))
    names = ("history", "slice", "contour", "importance", "parallel")
    assert [picture.file for picture in one(blocks, Panels).shown] == [f"tune-truncation-{name}" for name in names]
    assert len(one(blocks, Table).rows) == 3
    assert build(report) == []


def test_a_search_draws_its_figures_beside_its_files(folder: Path) -> None:
    draw_study(folder)
    first = {path.name: path.read_bytes() for path in folder.glob("*.svg")}
    draw_study(folder)
    assert first == {path.name: path.read_bytes() for path in folder.glob("*.svg")}
    assert sorted(first) == [f"{name}.svg" for name in ("contour", "history", "importance", "parallel", "slice")]
