from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.errors import UserError
from ccwm.studies.search import (
    SUMMARY,
    Candidate,
    Outcome,
    TrialRow,
    read_search,
    read_summary,
    write_outcome,
    write_search,
)

SPACE = {"truncation.threshold": {"kind": "float", "log": True}, "retrace.loss": {"kind": "choice"}}


def trial(number: int, state: str, value: float | None) -> dict[str, object]:
    return {"trial": number, "anchor": "", "state": state, "value": value}


def test_a_search_is_read_as_it_was_written(tmp_path: Path):
    summary = {**dict.fromkeys(SUMMARY, None), "space": SPACE, "winner": {"trial": 1}}
    trials = [trial(0, "complete", 1.5), trial(1, "pruned", 0.5), trial(2, "pruned", None), trial(3, "failed", None)]
    write_search(tmp_path, summary, trials, [])
    search = read_search(tmp_path)
    assert search.summary == summary
    assert (search.keys, search.numeric, search.winner) == ([*SPACE], ["truncation.threshold"], 1)
    assert search.is_log("truncation.threshold")
    assert search.whole["trial"].tolist() == [0]
    assert search.pruned["trial"].tolist() == [1]
    assert search.trials["anchor"].tolist() == [""] * 4
    assert len(search.candidates) == 0


def test_a_lost_key_and_a_bad_number_are_named(tmp_path: Path):
    write_search(tmp_path, dict.fromkeys(SUMMARY[1:], None), [], [])
    with pytest.raises(UserError, match=r"study.json lacks the key 'study'"):
        read_search(tmp_path)
    write_search(tmp_path, dict.fromkeys(SUMMARY, None), [trial(0, "complete", "high")], [])
    with pytest.raises(UserError, match=r"trials.csv: 'value' is 'high' in line 2"):
        read_search(tmp_path)


KEY = "truncation.window"
REST = {**dict.fromkeys(SUMMARY), "study": "tiny", "space": {KEY: {"kind": "int", "low": 2, "high": 5}}}


def row(number: int, values: list[float], *, state: str = "complete", anchor: str = "") -> TrialRow:
    mean = sum(values) / len(values) if values else None
    return TrialRow(number, number, state, anchor, {KEY: number + 2}, mean, dict(enumerate(values)), commit="abc")


def fresh(values: list[float]) -> TrialRow:
    return TrialRow(0, 0, "complete", "", {}, sum(values) / len(values), dict(zip((100, 101), values, strict=True)))


def test_the_winner_is_the_best_on_fresh_seeds(tmp_path: Path) -> None:
    rows = [row(0, [1.0, 3.0], anchor="default"), row(1, [4.0, 6.0]), row(2, [], state="failed")]
    outcome = Outcome(rows, [Candidate(rows[1], fresh([1.0, 2.0])), Candidate(rows[0], fresh([3.0, 4.0]))])
    write_outcome(tmp_path, REST, outcome)
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


def test_a_search_without_fresh_seeds_has_a_best_trial_and_no_winner(tmp_path: Path) -> None:
    rows = [row(0, [1.0, 3.0]), row(1, [4.0, 6.0])]
    outcome = Outcome(rows, [Candidate(rows[1], None)])
    assert outcome.best is rows[1]
    write_outcome(tmp_path, REST, outcome)
    assert read_search(tmp_path).winner is None


def test_a_search_without_candidates_can_be_read(tmp_path: Path) -> None:
    write_outcome(tmp_path, REST, Outcome([row(0, [], state="running")], []))
    search = read_search(tmp_path)
    assert len(search.candidates) == 0
    assert search.winner is None


def test_an_unknown_search_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "truncation").mkdir()
    write_outcome(tmp_path / "truncation", REST, Outcome([], []))
    with pytest.raises(UserError, match="Did you mean 'truncation'"):
        read_summary(tmp_path / "truncated")
