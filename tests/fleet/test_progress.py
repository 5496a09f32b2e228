"""What is told of cells while they run: from their logs to steps, returns and the time left."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.cells import Cell
from ccwm.fleet import progress
from ccwm.fleet.progress import Progress, read_about, read_status, seconds_left

CELLS = [Cell("train", "maze", "ccwm", seed) for seed in range(4)]
FIRST, SECOND, *_ = map(str, CELLS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(progress.time, "time", lambda: now[0])
    return now


def test_a_cell_s_log_tells_how_far_it_is(tmp_path: Path, clock: list[float]) -> None:
    with Progress(tmp_path, CELLS, {"pid": 7, "host": "here"}) as shown:
        shown.begin(FIRST)
        assert shown.rows[FIRST].state == "waiting"
        shown.log(FIRST, b"Running stage\n")
        clock[0] += 10
        shown.log(FIRST, b"maze ccwm: 10,000/40,000 steps \xc2\xb7 9 frames/s \xc2\xb7 return -1.25\n")
        clock[0] += 10
        shown.log(FIRST, b"maze ccwm: 20,000/40,000 steps \xc2\xb7 9 frames/s \xc2\xb7 return 3.04\n")
        row = shown.rows[FIRST]
        assert (row.state, row.note) == ("running", "20,000 of 40,000 steps, return 3.0")
        # A quarter in the last ten of twenty seconds, begun at a quarter: 20 s · (1 − 0.5) / (0.5 − 0.25)
        assert row.seconds_left(None) == pytest.approx(40.0)
        shown.end(SECOND, "failed", "exit code 1")
    assert (tmp_path / ".work" / "fleet" / "logs" / f"{FIRST}.log").read_bytes().startswith(b"Running stage\nmaze")
    assert {name: row.state for name, row in read_status(tmp_path).items()}[SECOND] == "failed"
    assert read_about(tmp_path) == {"pid": "7", "host": "here"}
    assert shown.counts() == {"waiting": 2, "running": 1, "done": 0, "failed": 1}


def test_the_time_left_is_the_work_left_over_the_cells_at_once(tmp_path: Path, clock: list[float]) -> None:
    with Progress(tmp_path, CELLS, {}) as shown:
        assert seconds_left(shown.rows) is None
        for name in (FIRST, SECOND):
            shown.log(name, b"x")
        clock[0] += 60
        shown.end(FIRST, "done")
        # 60 s each: the second is at its end, the two that wait take 120 s, one at a time
        assert seconds_left(shown.rows) == pytest.approx(120.0)


def test_no_time_is_told_before_a_training_has_a_pace(tmp_path: Path, clock: list[float]) -> None:
    first = Cell("collect", "maze", None, 0)
    with Progress(tmp_path, [first, *CELLS[:2]], {}) as shown:
        shown.log(str(first), b"x")
        clock[0] += 10
        shown.end(str(first), "done")
        assert seconds_left(shown.rows) is None  # 10 s say nothing about two trainings
        shown.log(FIRST, b"0/100 steps")
        clock[0] += 60
        shown.log(FIRST, b"50/100 steps")
        assert seconds_left(shown.rows) == pytest.approx(60.0 + 120.0)  # half of one, the whole of the other


def test_a_cell_that_is_begun_again_keeps_its_log(tmp_path: Path) -> None:
    with Progress(tmp_path, CELLS, {}) as shown:
        shown.begin(FIRST)
        shown.log(FIRST, b"one\n")
        shown.begin(FIRST, again="the worker died")
        assert shown.rows[FIRST].state == "waiting"
        shown.log(FIRST, b"two\n")
        log = tmp_path / ".work" / "fleet" / "logs" / f"{FIRST}.log"
        assert log.read_bytes() == b"one\ntwo\n"
        shown.begin(FIRST)
        assert not log.exists()
