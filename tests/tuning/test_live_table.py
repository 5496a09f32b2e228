"""The live table, and the time that is left."""

from __future__ import annotations

import time

import pytest
from rich.console import Console

from ccwm.studies.search import Candidate, Outcome, TrialRow
from ccwm.tuning.live_table import LiveTable, trials_table


def row(number: int, state: str, seconds: float | None, value: float | None = 1.0) -> TrialRow:
    return TrialRow(number, number, state, "", {"truncation.window": 3}, value, {0: 1.0, 1: 3.0}, seconds)


def make_table(outcome: Outcome, *, trials: int | None = None, deadline: float | None = None) -> LiveTable:
    table = LiveTable(lambda: outcome, keys=["truncation.window"], trials=trials, deadline=deadline)
    table.note("begun")
    return table


def test_time_left_counts_trials_and_fresh_seeds_and_shares_them() -> None:
    rows = [row(0, "complete", 100.0), row(1, "pruned", 20.0), row(2, "failed", 999.0)]
    rows += [row(3, "running", None), row(4, "running", None)]
    outcome = Outcome(rows, [Candidate(rows[0], None)])
    # 6 trials and a candidate are owed at 60 s each; two processes share them.
    assert make_table(outcome, trials=8).time_left() == pytest.approx(7 * 60 / 2)
    assert make_table(Outcome([], []), trials=8).time_left() is None
    left = make_table(outcome, trials=8, deadline=time.monotonic() + 10).time_left()
    assert left == pytest.approx(10, abs=1)


def test_a_table_has_a_line_for_each_trial(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(0, "complete", 1.0, 2.0), row(1, "running", None, None)]
    Console(width=120).print(trials_table(rows, ["truncation.window"], rows[0]))
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["trial", "state", "window", "seeds", "value"]
    assert first.split() == ["0", "complete", "3", "2", "2", "±1.4"]
    assert second.split()[:4] == ["1", "running", "3", "2"]
