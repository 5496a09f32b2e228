from __future__ import annotations

from pathlib import Path

import numpy as np

from ccwm.studies.components import (
    DPI,
    FILM,
    Components,
    Curves,
    components_figure,
    components_video,
    read_components,
    write_components,
)

COLOURS = {"dreamer": "#0072b2", "ccwm": "#d55e00"}


def components(*variances: float) -> Components:
    """Components a, b, … with these variances."""
    names = np.array([chr(ord("a") + index) for index in range(len(variances))])
    return Components(names, np.full(len(names), 0.25), np.full(len(names), 0.5), np.array(variances))


def curves(count: int = 2) -> Curves:
    """Five steps, two of them seen; Dreamer is right."""
    truth = np.arange(5 * count, dtype=np.float32).reshape(5, count)
    return Curves.of(components(*range(1, count + 1)), 2, truth, {"dreamer": truth, "ccwm": -truth})


def test_those_that_vary_most_are_chosen_in_their_own_order():
    assert components(0.5, 3.0, 0.1, 3.0, 7.0).widest(3).tolist() == [1, 3, 4]
    assert components(0.5, 3.0).widest(8).tolist() == [0, 1]
    assert components(2.0, 2.0, 2.0).widest(2).tolist() == [0, 1]  # of equal ones the first
    many = curves(10)
    assert (many.names, many.truth.shape) == (list("cdefghij"), (5, 8))
    assert many.truth[0].tolist() == [2, 3, 4, 5, 6, 7, 8, 9]


def test_files_hold_what_was_measured(tmp_path: Path):
    for written in (components(1.0, 2.0), components()):
        write_components(tmp_path, written)
        read = read_components(tmp_path)
        assert [of.tolist() for of in read] == [of.tolist() for of in written]


def test_a_panel_has_truth_predictions_and_the_context():
    axes, other = components_figure(curves(), COLOURS).axes
    assert (axes.get_title(loc="left"), other.get_title(loc="left")) == ("a", "b")
    truth, dreamer, ccwm = axes.get_lines()
    assert truth.get_xdata().tolist() == [-1, 0, 1, 2, 3]  # 0 is the last that is seen
    assert truth.get_ydata().tolist() == dreamer.get_ydata().tolist() == [0, 2, 4, 6, 8]
    assert ccwm.get_ydata().tolist() == [0, -2, -4, -6, -8]
    assert ccwm.get_color() == COLOURS["ccwm"]
    (context,) = axes.patches
    assert (context.get_x(), context.get_x() + context.get_width()) == (-1, 0)


def test_a_video_shows_the_rollout_beside_curves_that_grow():
    frames = np.random.default_rng(0).integers(0, 256, (5, 60, 60, 3), dtype=np.uint8)
    film = components_video(curves(), frames, COLOURS)
    wide, high = (round(side * DPI) for side in FILM)
    assert film.shape == (5, high, high + wide, 3)
    assert all(side % 2 == 0 for side in film.shape[1:3])  # H.264 halves the resolution of colours
    for step in range(4):
        assert not np.array_equal(film[step, :, :high], film[step + 1, :, :high])
    red = np.array([0xD5, 0x5E, 0x00])
    drawn = [int((film[step, :, high:] == red).all(-1).sum()) for step in range(5)]
    assert drawn == sorted(drawn)
    assert drawn[4] > drawn[2] > drawn[0] > 0  # the legend is always there
