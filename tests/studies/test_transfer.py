from __future__ import annotations

import json
from pathlib import Path

import pytest

from ccwm.envs.change import Change
from ccwm.errors import UserError
from ccwm.settings.schema import Transfer
from ccwm.studies.transfer import (
    Transferred,
    describe,
    draw_change,
    read_metrics,
    read_returns,
    summarise,
    transfer_returns,
    write_transfer,
)

from .trained_agent import small_agent

SETTINGS = Transfer(
    rows=[["R"], ["L"]], draws=2, reward=[4.0], mass=[0.5, 1.5], friction=[(1.5, 4.0, 3.0)], layouts=["two_rooms"]
)


def test_a_row_changes_what_it_names_and_nothing_else():
    change = draw_change(SETTINGS, ["R", "F"], seed=0, draw=0)
    assert change == Change(reward=4.0, friction=(1.5, 4.0, 3.0), units="factor")


def test_draws_are_a_function_of_their_name_and_use_the_whole_list():
    masses = [draw_change(SETTINGS, ["M"], seed=0, draw=draw).mass for draw in range(20)]
    assert masses == [draw_change(SETTINGS, ["M"], seed=0, draw=draw).mass for draw in range(20)]
    assert set(masses) == {0.5, 1.5}
    assert masses != [draw_change(SETTINGS, ["M"], seed=1, draw=draw).mass for draw in range(20)]


def test_a_change_in_words():
    assert describe(Change(reward=2.0, mass=0.5, friction=(1.5, 4.0, 3.0))) == "reward 2 · mass 0.5 · friction 1.5/4/3"
    assert describe(Change()) == "nothing"


def test_rows_by_hand():
    results = [Transferred(row, 0, 1, "", total) for row, total in
               (("unchanged", 5.0), ("R", 1.0), ("R", 3.0), ("R+M", 2.0))]  # fmt: skip
    got = summarise(results)
    assert got.unchanged == (5.0, 0.0, 1)
    assert got.rows == {"R": (2.0, pytest.approx(2**0.5), 2), "R+M": (2.0, 0.0, 1)}


def test_files_are_read_as_they_were_written(tmp_path: Path):
    results = [Transferred("unchanged", 0, 1, "nothing", 5.0), Transferred("R", 0, 1, "reward 2", 4.5)]
    write_transfer(tmp_path, summarise(results), results)
    assert read_metrics(tmp_path) == summarise(results)
    assert read_returns(tmp_path).to_dict("records")[1] == {
        **{"row": "R", "draw": 0, "seed": 1, "change": "reward 2", "return": 4.5},
    }
    (tmp_path / "metrics.json").write_text(json.dumps({"unchanged": {"mean": 1, "sd": 0, "n": 1}, "rows": {"R": {}}}))
    with pytest.raises(UserError, match=r"metrics.json: 'rows/R/mean'"):
        read_metrics(tmp_path)


def test_a_rescaled_reward_is_no_difference_and_another_maze_is_one():
    told: list[int] = []
    results = transfer_returns(small_agent(), SETTINGS, seed=0, advance=lambda: told.append(1))
    returns = {row: [r.total for r in results if r.row == row] for row in ("unchanged", "R", "L")}
    assert returns["R"] == pytest.approx(returns["unchanged"])  # in the original scale of the reward
    assert returns["L"] != pytest.approx(returns["unchanged"])
    assert len(told) == len(results) == 6
    assert [r.seed for r in results if r.row == "R"] == [r.seed for r in results if r.row == "L"]
