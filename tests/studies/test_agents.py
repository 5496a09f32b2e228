from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ccwm.agents.export import save_agent
from ccwm.cells import Cell
from ccwm.envs.change import Change
from ccwm.errors import UserError
from ccwm.settings.agent import Trainer
from ccwm.studies.agents import observation_names, play, ready_agent

from .trained_agent import small_agent


def test_an_agent_plays_in_the_environment_of_its_training_an_episode_a_seed():
    agent = small_agent()
    first, second, again = (played.episode for played in play(agent, [0, 1, 0]))
    assert first.observation.shape == (31, 32, 32, 3)  # the reset, and 60 frames, two for each action
    assert np.array_equal(first.observation, again.observation)
    assert not np.array_equal(first.observation, second.observation)


def test_exploring_is_not_greedy():
    agent = small_agent()
    (greedy,), (exploring,) = play(agent, [0]), play(agent, [0], explore=True)
    assert not np.array_equal(greedy.episode.action, exploring.episode.action)


def test_a_changed_environment_changes_the_return():
    agent = small_agent()
    (own,), (changed,) = (play(agent, [0], change=Change(reward=reward)) for reward in (1.0, 4.0))
    assert abs(changed.total - 4 * own.total) < 1e-4 * abs(changed.total)


def test_the_agent_of_another_cell_is_refused(tmp_path: Path):
    cell = Cell("evaluate", "maze_open", "ccwm", 1)
    (tmp_path / cell.model).mkdir(parents=True)
    agent = small_agent()  # of seed 0
    save_agent(tmp_path / cell.model, agent.learner, agent.card)
    with pytest.raises(UserError, match=r"train@maze_open-ccwm-0: `dvc repro train@maze_open-ccwm-1`"):
        ready_agent(cell, Trainer(accelerator="cpu", threads=1), tmp_path)


def test_the_file_of_an_agent_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A cell of a harmless task finds an agent whose task is code: that code stays where it is."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    cell, agent = Cell("evaluate", "maze_open", "ccwm", 0), small_agent()
    agent.card = agent.card.model_copy(update={"task": "trap:World"})
    (tmp_path / cell.model).mkdir(parents=True)
    save_agent(tmp_path / cell.model, agent.learner, agent.card)
    with pytest.raises(UserError, match="trap:World"):
        ready_agent(cell, Trainer(accelerator="cpu", threads=1), tmp_path)
    for use in (lambda: list(play(agent, [0])), lambda: observation_names(agent)):
        with pytest.raises(UserError, match="a file must not choose"):
            use()
