"""The files of a search: what is written is what is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.errors import UserError
from ccwm.studies.search import Candidate, Outcome, TrialRow, read_search, read_summary, write_search

KEY = "truncation.window"
SUMMARY = {
    **dict.fromkeys(("study", "task", "variant", "measure", "measure_title", "sampler", "pruner"), "tiny"),
    **{"overrides": {}, "seeds": [0, 1], "fresh_seeds": [100, 101], "importance": {}},
    "space": {KEY: {"kind": "int", "low": 2, "high": 5}},
}


def row(number: int, values: list[float], *, state: str = "complete", anchor: str = "") -> TrialRow:
    mean = sum(values) / len(values) if values else None
    return TrialRow(number, number, state, anchor, {KEY: number + 2}, mean, dict(enumerate(values)), commit="abc")


def fresh(values: list[float]) -> TrialRow:
    return TrialRow(0, 0, "complete", "", {}, sum(values) / len(values), dict(zip((100, 101), values, strict=True)))


def test_a_finished_search(tmp_path: Path) -> None:
    rows = [row(0, [1.0, 3.0], anchor="default"), row(1, [4.0, 6.0]), row(2, [], state="failed")]
    outcome = Outcome(rows, [Candidate(rows[1], fresh([1.0, 2.0])), Candidate(rows[0], fresh([3.0, 4.0]))])
    write_search(tmp_path, outcome, SUMMARY)
    search = read_search(tmp_path)
    assert search.keys == [KEY]
    assert search.winner == 0  # the best on fresh seeds, not on those of the search
    assert list(search.trials["value"])[:2] == [2.0, 5.0]
    assert search.trials["sd"][0] == pytest.approx(2**0.5)
    assert list(search.trials["anchor"]) == ["default", "", ""]
    assert list(search.candidates["winner"]) == [False, True]
    assert list(search.candidates["fresh seed 101"]) == [2.0, 4.0]
    summary = search.summary
    assert summary["trials"] == {"complete": 2, "pruned": 0, "failed": 1, "running": 0}
    assert summary["commits"] == ["abc"]
    assert summary["winner"] is not None
    assert summary["winner"]["point"] == {KEY: 2}
    assert search.figures == {}


def test_a_search_without_fresh_seeds_has_a_best_trial_and_no_winner(tmp_path: Path) -> None:
    rows = [row(0, [1.0, 3.0]), row(1, [4.0, 6.0])]
    outcome = Outcome(rows, [Candidate(rows[1], None)])
    assert outcome.best is rows[1]
    write_search(tmp_path, outcome, SUMMARY)
    assert read_search(tmp_path).winner is None


def test_a_search_without_candidates_can_be_read(tmp_path: Path) -> None:
    write_search(tmp_path, Outcome([row(0, [], state="running")], []), SUMMARY)
    search = read_search(tmp_path)
    assert len(search.candidates) == 0
    assert search.winner is None


def test_an_unknown_search_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "truncation").mkdir()
    write_search(tmp_path / "truncation", Outcome([], []), SUMMARY)
    with pytest.raises(UserError, match="Did you mean 'truncation'"):
        read_summary(tmp_path / "truncated")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("study.json", '"seeds": [', '"seeds": ["a", '),
        ("study.json", '"complete": 2', '"complete": NaN'),
        ("study.json", "{", ""),
        ("trials.csv", "2.0", "nan"),
        ("candidates.csv", "True", "maybe"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, old: str, new: str) -> None:
    rows = [row(0, [1.0, 3.0], anchor="default"), row(1, [4.0, 6.0])]
    write_search(tmp_path, Outcome(rows, [Candidate(rows[0], fresh([3.0, 4.0]))]), SUMMARY)
    path = tmp_path / name
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=name):
        read_search(tmp_path)
