from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ccwm.studies.maps import TrajectoryMap, ValueMap, draw_trajectory, draw_truncated, draw_values, maps_figure


def along(*, retraces: bool = True) -> TrajectoryMap:
    points = np.stack([np.arange(6.0), np.zeros(6)], 1)
    kept = np.array([True, True, False, True, True, True])
    return TrajectoryMap(points, points + 9 if retraces else points[:0], kept, np.arange(6) == 2)


def titles(figure: Figure) -> list[str]:
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def test_true_and_retraced_states_share_a_plane():
    figure = Figure()
    draw_trajectory(figure, along())
    assert titles(figure) == ["true states", "retraced states"]
    first, second = figure.axes[:2]
    assert first.dataLim.bounds == second.dataLim.bounds
    alone = Figure()
    draw_trajectory(alone, along(retraces=False))
    assert titles(alone) == ["true states"]


def test_a_transition_leaves_with_either_of_its_ends():
    figure = Figure()
    draw_truncated(figure, along())
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels[:2] == ["kept (3)", "truncated (2)"]  # 1 → 2 and 2 → 3
    assert len(labels) == 3


def test_values_have_one_scale_for_all_variants():
    points = np.zeros((2, 2))
    figure = Figure()
    draw_values(
        figure, {"dreamer": ValueMap(points, np.array([0.0, 1.0])), "ccwm": ValueMap(points, np.array([2.0, 5.0]))}
    )
    assert titles(figure) == ["dreamer", "ccwm"]
    assert {dots.get_clim() for axes in figure.axes[:2] for dots in axes.collections} == {(0.0, 5.0)}


def test_all_maps_of_an_agent_are_one_figure():
    values = ValueMap(np.zeros((2, 2)), np.array([0.0, 1.0]))
    figure = maps_figure("ccwm", along(), along(retraces=False), values)
    drawn = titles(figure)
    assert drawn == ["true states", "retraced states", "true states", "truncated transitions", "ccwm"]
