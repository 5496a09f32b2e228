from __future__ import annotations

import logging

import numpy as np
import pytest

from ccwm.agents.policy import RandomPolicy
from ccwm.envs.factory import make_env
from ccwm.envs.maze import MazeWorld
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.seeds import collected_seed
from ccwm.studies import replay
from ccwm.studies.prediction import window_of
from ccwm.studies.replay import SIZE, render_heldout
from ccwm.training.rollouts import play_episode

from .trained_agent import small_agent

AGENT = small_agent(observation="state")
CARD = AGENT.card


def collected(number: int) -> Episode:
    env = make_env(CARD.task, CARD.config.env)
    return play_episode(env, RandomPolicy(2), collected_seed(0, "heldout", number)).episode


def render(heldout: dict[int, Episode], shown: int = 1) -> np.ndarray | None:
    return render_heldout(AGENT, heldout, length=6, shown=shown, seed=0)


def test_the_pictures_are_those_of_the_window_that_is_predicted():
    heldout = {1: collected(1), 3: collected(3)}  # the episodes 0 and 2 are damaged
    frames = render(heldout, shown=2)
    assert frames is not None
    assert frames.shape == (2, 6, SIZE, SIZE, 3)
    window = window_of(heldout[3], 6, seed=0, index=1)
    env = make_env(CARD.task, CARD.config.env.model_copy(update={"size": SIZE}))
    env.reset(seed=collected_seed(0, "heldout", 3))
    for action in heldout[3].action[1 : window.stop]:
        env.step(action)
    assert np.array_equal(frames[1, -1], env.render())
    assert not np.array_equal(frames[1, -1], frames[1, 0])


def test_another_episode_than_the_stored_one_is_not_shown(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        assert render({0: collected(1)}) is None
    assert "played again" in caplog.text


def test_a_world_that_cannot_be_rendered_has_no_pictures(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fail(self: MazeWorld) -> None:
        raise RuntimeError("no screen")

    with caplog.at_level(logging.WARNING), monkeypatch.context() as patch:
        patch.setattr(MazeWorld, "render", fail)
        assert render({0: collected(0)}) is None
    assert "no screen" in caplog.text

    def no_gl() -> None:
        raise UserError("no GL here")

    monkeypatch.setattr(replay, "renders_by_gl", lambda task: True)
    monkeypatch.setattr(replay, "probe", no_gl)
    assert render({0: collected(0)}) is None
    assert "no GL here" in caplog.text
