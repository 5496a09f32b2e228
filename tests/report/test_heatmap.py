from __future__ import annotations

import pandas as pd

from ccwm.report.heatmap import grid, heatmap_figure, parts


def returns(**rows: tuple[str, list[float]]) -> pd.DataFrame:
    return pd.DataFrame([{"change": change, "return": value} for change, of in rows.values() for value in of])


def test_what_changes_an_environment() -> None:
    assert parts("nothing") == parts("reward 2") == {}
    assert parts("reward 2 · mass 6 · friction 0.6/0.4/0.3") == {"mass": "6", "friction": "0.6/0.4/0.3"}
    assert parts("layout two_rooms") == {"layout": "two_rooms"}


def test_the_grid_by_hand() -> None:
    rows = {
        "unchanged": ("nothing", [8.0]),
        "mass": ("reward 2 · mass 10", [1.0, 3.0]),
        "friction": ("friction 0.6/0.4/0.3", [5.0]),
        "both": ("mass 10 · friction 0.6/0.4/0.3", [7.0]),
    }
    table = grid(returns(**rows))
    assert table is not None
    assert table.to_dict() == {"own": {"own": 8.0, "mass 10": 2.0}, "0.6/0.4/0.3": {"own": 5.0, "mass 10": 7.0}}
    other = grid(returns(**rows, more=("friction 0.6/0.4/0.3", [7.0])))  # a mean of 6
    assert other is not None
    figure = heatmap_figure("cheetah_run", {"dreamer": table, "ccwm": other}, reference="dreamer")
    panels = {axes.get_title(): axes for axes in figure.axes if axes.get_title()}
    assert list(panels) == ["dreamer", "ccwm", "ccwm − dreamer"]
    assert sorted(text.get_text() for text in panels["ccwm − dreamer"].texts) == ["0", "0", "0", "1"]
    assert grid(returns(unchanged=("nothing", [8.0]), reward=("reward 2", [8.0]))) is None


def test_masses_are_ordered_by_number() -> None:
    changes = ["nothing", "mass 20", "mass 6", "mass 6 · stiffness 2", "layout open"]
    table = grid(pd.DataFrame({"change": changes, "return": 1.0}))
    assert table is not None
    assert list(table.index) == ["own", "layout open", "mass 6", "mass 20", "mass 6 · stiffness 2"]
