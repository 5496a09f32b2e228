from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.studies.components import Components
from ccwm.studies.retracing import (
    choose_window,
    read_retracing,
    retracing_figure,
    show_retracing,
    write_retracing,
)
from ccwm.studies.trajectories import see

from .trained_agent import NO_COMPONENTS, random_episode, small_agent


@pytest.fixture(scope="module")
def episode() -> Episode:
    """A random episode of 31 steps behind one-way doors, with one crossing put into it."""
    played = random_episode(small_agent(task="maze_one_way"), 3)
    return played._replace(irreversible=np.arange(31) == 20)


def test_the_window_is_around_the_first_event(episode: Episode):
    calm = episode._replace(irreversible=np.zeros(31, bool))
    assert choose_window([calm, episode], steps=10, seed=0) == (1, slice(15, 25))  # 15 … 24, with the event at 20
    late = episode._replace(irreversible=np.arange(31) == 29)
    assert choose_window([late], steps=10, seed=0) == (0, slice(20, 30))  # 20 … 29: state 30 has no retraced one
    assert choose_window([episode], steps=500, seed=0) == (0, slice(0, 30))
    found = choose_window([calm], steps=10, seed=0)
    assert found == choose_window([calm, calm], steps=10, seed=0)
    assert found[1].start in range(21)


def test_what_is_shown_is_decoded_from_states_and_from_retraced_ones(episode: Episode):
    agent = small_agent()
    seen = see(agent, episode)
    kept = np.arange(31) != 20
    shown = show_retracing(agent, seen, kept, slice(15, 25), threshold=0.25)
    assert np.array_equal(shown.truth, episode.observation[15:25])
    assert shown.forward.shape == shown.retraced.shape == (10, 32, 32, 3)
    assert not np.array_equal(shown.forward, shown.retraced)
    by_hand = np.mean(((shown.retraced[4].astype(float) - episode.observation[19]) / 255) ** 2)
    assert shown.retraced_error[4] == pytest.approx(by_hand)
    value = seen.value.numpy()
    before, after = value[6:16].mean(), value[7:17].mean()  # S = 10: the comparison whose newest step is 16
    assert shown.change[1] == pytest.approx(
        abs(after - before) / max(abs(before), 0.01), rel=1e-3
    )  # a small difference of large means
    assert np.flatnonzero(~shown.kept).tolist() == [5]
    early = show_retracing(agent, seen, kept, slice(0, 12), threshold=0.25)
    assert np.isnan(early.change[:10]).all()
    assert not np.isnan(early.change[10:]).any()


@pytest.mark.parametrize("retraces", [True, False])
def test_files_hold_what_is_shown(tmp_path: Path, episode: Episode, retraces: bool):
    agent = small_agent(retrace_weight=1.0 if retraces else 0.0)
    shown = show_retracing(agent, see(agent, episode), np.arange(31) != 20, slice(8, 28), threshold=0.25)
    write_retracing(tmp_path, shown, NO_COMPONENTS)
    got = read_retracing(tmp_path)
    for name, value in shown._asdict().items():
        assert np.array_equal(getattr(got, name), value, equal_nan=name == "change"), name
    assert np.isnan(got.change[:2]).all()  # step 10 is the first with S = 10 values before it
    assert not np.isnan(got.change[2:]).any()
    assert len(got.retraced) == len(got.retraced_error) == (20 if retraces else 0)
    rows_drawn = [label.get_text() for label in retracing_figure(shown, NO_COMPONENTS).axes[0].get_yticklabels()]
    assert rows_drawn == ["truth", "seen z̃", "retraced ž"][: 3 if retraces else 2]


def test_numbers_of_other_frames_are_refused(tmp_path: Path, episode: Episode):
    agent = small_agent()
    shown = show_retracing(agent, see(agent, episode), np.ones(31, bool), slice(8, 28), threshold=0.25)
    write_retracing(tmp_path, shown, NO_COMPONENTS)
    lines = (tmp_path / "retracing.csv").read_text().splitlines()
    (tmp_path / "retracing.csv").write_text("\n".join([*lines[:-1], ""]))
    with pytest.raises(UserError, match=r"retracing.csv has 19 lines for the 20 observations"):
        read_retracing(tmp_path)


def test_states_are_drawn_as_curves_of_their_components(tmp_path: Path):
    agent = small_agent(observation="state")
    shown = show_retracing(agent, see(agent, random_episode(agent, 3)), np.ones(31, bool), slice(8, 28), threshold=0.25)
    squashed = np.log1p(np.abs(shown.retraced.astype(float))) * np.sign(shown.retraced) - np.log1p(shown.truth)
    assert shown.retraced_error == pytest.approx((squashed**2).mean(1), rel=1e-5)
    components = Components(np.array(["x", "y"]), *np.ones((3, 2)))
    write_retracing(tmp_path, shown, components)
    got = read_retracing(tmp_path)
    assert np.array_equal(got.forward, shown.forward)
    x, y, *below = retracing_figure(got, components).axes
    assert [axes.get_ylabel() for axes in (x, y, *below)] == ["x", "y", "value", "Δ", "MSE"]
    assert [line.get_ydata().tolist() for line in y.get_lines()] == [
        of[:, 1].tolist() for of in (shown.truth, shown.forward, shown.retraced)
    ]
