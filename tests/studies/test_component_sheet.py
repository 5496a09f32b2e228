"""Episodes of states as curves."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from ccwm.episode import Episode
from ccwm.studies import component_sheet
from ccwm.studies.component_sheet import write_component_sheet
from ccwm.studies.contact_sheet import Row


def states(values: np.ndarray) -> Episode:
    steps = len(values)
    return Episode(
        observation=values.astype(np.float32),
        action=np.zeros((steps, 1), np.float32),
        reward=np.arange(steps, dtype=np.float32),
        is_first=np.arange(steps) == 0,
        continues=np.ones(steps, np.float32),
        irreversible=np.zeros(steps, bool),
    )


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []
    monkeypatch.setattr(component_sheet, "write_figure", lambda path, figure, dpi: figures.append(figure))
    return figures


def test_every_component_and_the_reward_have_a_panel_with_a_line_for_each_episode(drawn: list[Figure]) -> None:
    rows = [Row("first", states(np.arange(12).reshape(3, 4))), Row("second", states(np.zeros((2, 4))))]
    write_component_sheet(Path("sheet.png"), rows, ("a", "b[0]", "b[1]", "c"))
    panels = [axes for axes in drawn[0].axes if axes.lines]
    assert [axes.get_title(loc="left") for axes in panels] == ["a", "b[0]", "b[1]", "c", "reward"]
    assert [line.get_ydata().tolist() for line in panels[1].lines] == [[1, 5, 9], [0, 0]]
    assert panels[4].lines[0].get_ydata().tolist() == [0, 1, 2]


def test_a_picture_of_very_many_components_says_what_it_leaves_out(
    drawn: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(component_sheet, "MOST", 2)
    write_component_sheet(Path("sheet.png"), [Row("only", states(np.zeros((2, 3))))], ("a", "b", "c"))
    assert len([axes for axes in drawn[0].axes if axes.lines]) == 3
    assert "2 of 3" in drawn[0].get_suptitle()


def test_a_picture_is_written_the_same_twice(tmp_path: Path) -> None:
    rows = [Row("only", states(np.random.default_rng(0).normal(size=(5, 2))))]
    for name in ("one.png", "two.png"):
        write_component_sheet(tmp_path / name, rows, ("a", "b"))
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert mpl.rcParams["axes.spines.top"]
