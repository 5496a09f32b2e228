from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.errors import UserError
from ccwm.studies.search import SUMMARY, read_search, write_search

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
