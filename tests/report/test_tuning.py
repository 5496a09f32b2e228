"""The section on tuning: both numbers of the winner, and what may be chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ccwm.report.blocks import Panels, Table
from ccwm.report.section import Report
from ccwm.report.tuning import against_default, build, candidates_table, label, search_words, setting
from ccwm.studies.search import read_search

from .results_tree import one
from .search_files import FRESH, write_study


def test_settings_have_the_papers_letters() -> None:
    assert [label("truncation.threshold"), label("model.deter")] == ["η (threshold)", "model.deter"]
    assert [setting(0.123456), setting(7), setting("l2")] == ["0.1235", "7", "l2"]


def test_the_winner_s_curse_is_visible(tmp_path: Path) -> None:
    search = read_search(write_study(tmp_path))
    said = " ".join(search_words(search))
    for number in ("5 trials", "120.0", "106.0", "η = 0.21, S = 7 and τ = 3", "seeds 100 and 101"):
        assert number in said
    difference = against_default(search)
    assert difference is not None  # paired by seed: 104 − 98 and 108 − 102 are both 6, so the interval has no width
    assert (difference.mean, difference.low, difference.high) == (6.0, 6.0, 6.0)
    winner = next(row for row in candidates_table(search).rows if row[0].sort == 2)
    assert [entry.text for entry in winner] == [
        *("2, winner", "0.21", "7", "3", "120.0 ± 4.24", "106.0 ± 2.83", "−14.00"),
    ]


def test_a_difference_that_may_be_chance_is_called_so(tmp_path: Path) -> None:
    clear = search_words(read_search(write_study(tmp_path / "clear")))[2]
    wide = search_words(read_search(write_study(tmp_path / "wide", FRESH | {2: (121.0, 102.0)})))[2]  # + 23 and 0
    assert "chance" in wide
    assert "chance" not in clear


def test_a_search_that_found_nothing_says_so(tmp_path: Path) -> None:
    found = search_words(read_search(write_study(tmp_path / "default", FRESH | {0: (200.0, 200.0)})))
    assert "default settings win" in found[2]
    unchecked = read_search(write_study(tmp_path / "open", FRESH | {2: None}))
    assert unchecked.winner is None
    assert len(search_words(unchecked)) == 2


def test_the_section_is_there_where_there_was_a_search(
    tmp_path: Path, report: Report, make_report: Callable[..., Report]
) -> None:
    write_study(tmp_path)
    blocks = build(make_report(tmp_path))
    (picture,) = one(blocks, Panels).shown
    assert (picture.file, picture.svg) == (
        "tune-truncation-history",
        '<svg id="tune-truncation-history-a"><defs/></svg>',
    )
    assert len(one(blocks, Table).rows) == 2
    assert build(report) == []
