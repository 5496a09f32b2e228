from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from trained_agent import small_agent

from ccwm.agents.export import Agent
from ccwm.agents.policy import RandomPolicy
from ccwm.settings.agent import Retrace
from ccwm.episode import Episode
from ccwm.studies.drawings import retracing_figure, shown_steps
from ccwm.studies.retracing import Window, choose_window, show_retracing, write_retracing
from ccwm.studies.returns import agent_world
from ccwm.studies.states import PIECES, study_states
from ccwm.studies.trajectories import exploring_episodes, greedy_trajectory, see
from ccwm.training.rollouts import play


def without_retracing() -> Agent:
    torch.manual_seed(0)
    return Agent(small_agent().card.model_copy(update={"retrace": Retrace(weight=0.0)})).eval()


@pytest.fixture(scope="module")
def episode() -> Episode:
    """A random episode of 31 steps behind one-way doors, with one crossing put into it."""
    (played,) = play([agent_world(small_agent(task="maze_one_way"))], RandomPolicy(2), [3])
    return played.episode._replace(irreversible=np.arange(31) == 20)


def test_states_are_those_of_the_policy_and_are_retraced_from_the_next(episode: Episode):
    agent = small_agent()
    seen = see(agent, episode)
    assert seen.states.shape == (31, 12)
    assert seen.retraced is not None
    assert seen.retraced.shape == (30, 12)
    assert seen.value.shape == (31,)
    agent.policy.reset([0])
    for t in range(3):
        agent.policy.act(episode.observation[t][None])
        agent.policy.rows[0].action = torch.from_numpy(
            episode.action[t + 1][None]
        )  # what the episode did, not what it would
    state = agent.policy.rows[0].state
    assert state is not None
    assert torch.allclose(state.feature[0], seen.states[2], atol=1e-6)
    # ž_2 by hand: ρ(z̃_3, z̃_2), then one step of the prior from z̃_3
    rssm, later, earlier = agent.world_model.rssm, seen.states[3:4], seen.states[2:3]
    with torch.no_grad():
        action = agent.retracing.reverse(later, earlier)
        deter = rssm.advance(later[:, rssm.stoch :], later[:, : rssm.stoch], action)
        by_hand = torch.cat([rssm.prior(deter).mean, deter], -1)
    assert torch.allclose(by_hand[0], seen.retraced[2], atol=1e-6)
    assert torch.allclose(agent.actor_critic.critic(seen.states), seen.value, atol=1e-6)


def test_dreamer_is_seen_without_retracing(episode: Episode):
    assert see(without_retracing(), episode).retraced is None


def test_new_episodes_are_a_function_of_agent_and_seed():
    agent, told = small_agent(), []
    first = exploring_episodes(agent, episodes=2, seed=0, advance=lambda: told.append(1))
    again = exploring_episodes(agent, episodes=2, seed=0, advance=lambda: None)
    assert len(told) == 2
    assert all(np.array_equal(a.action, b.action) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0].action, first[1].action)
    greedy = greedy_trajectory(agent, seed=0)
    assert np.array_equal(greedy.image, greedy_trajectory(agent, seed=0).image)


def test_the_window_is_around_the_first_event(episode: Episode):
    calm = episode._replace(irreversible=np.zeros(31, bool))
    assert choose_window([calm, episode], steps=10, seed=0) == Window(1, 15, 10)  # 15 … 24, with the event at 20
    late = episode._replace(irreversible=np.arange(31) == 29)
    assert choose_window([late], steps=10, seed=0) == Window(0, 20, 10)  # 20 … 29: state 30 has no retraced one
    assert choose_window([episode], steps=500, seed=0) == Window(0, 0, 30)
    found = choose_window([calm], steps=10, seed=0)
    assert found == choose_window([calm, calm], steps=10, seed=0)
    assert found.first in range(21)


def test_what_is_shown_is_decoded_from_states_and_from_retraced_ones(episode: Episode):
    agent = small_agent()
    seen = see(agent, episode)
    kept = np.arange(31) != 20
    shown = show_retracing(agent, seen, kept, Window(0, 15, 10), threshold=0.25)
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
    early = show_retracing(agent, seen, kept, Window(0, 0, 12), threshold=0.25)
    assert np.isnan(early.change[:10]).all()
    assert not np.isnan(early.change[10:]).any()


@pytest.mark.parametrize("retraces", [True, False])
def test_files_hold_what_is_shown(tmp_path: Path, episode: Episode, retraces: bool):
    agent = small_agent() if retraces else without_retracing()
    shown = show_retracing(agent, see(agent, episode), np.arange(31) != 20, Window(0, 8, 20), threshold=0.25)
    write_retracing(tmp_path, shown)
    with (tmp_path / "retracing.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == [str(step) for step in range(8, 28)]
    assert [row["step"] for row in rows if row["kept"] == "False"] == ["20"]
    assert [row["step"] for row in rows if row["irreversible"] == "True"] == ["20"]
    assert rows[1]["change"] == ""
    assert rows[2]["change"] != ""  # step 10 is the first with S = 10 values before it
    assert all((row["retraced_error"] != "") == retraces for row in rows)
    assert len(load_file(tmp_path / "retracing.safetensors")["retraced"]) == (20 if retraces else 0)
    rows_drawn = [label.get_text() for label in retracing_figure(shown).axes[0].get_yticklabels()]
    assert rows_drawn == ["truth", "seen z̃", "retraced ž"][: 3 if retraces else 2]


def test_frames_are_the_middles_of_equal_spans():
    assert shown_steps(60) == [2, 7, 12, 17, 22, 27, 32, 37, 42, 47, 52, 57]
    assert shown_steps(3) == [0, 1, 2]


def test_the_whole_study_tells_how_far_it_is_and_names_its_numbers(episode: Episode):
    told: list[int] = []
    settings = States(episodes=2, mapped=60, trajectory=500, late=10, perplexity=5.0, neighbours=3, thresholds=[0.1])
    study = study_states(small_agent(), [episode], settings, shown=20, seed=0, advance=lambda: told.append(1))
    assert len(told) == 1 + 2 * 2 + PIECES
    assert len(study.embeddings.values.points) == 60
    assert study.truncation[0].episodes == 3  # the held-out one and two new ones
    metrics = study.metrics()
    assert {"trajectory/overlap", "late/trustworthiness", "values/value_smoothness"} < metrics.keys()
    assert metrics["truncation/event_recall"] in (0.0, 1.0)  # one event
    assert all(isinstance(value, float) for value in metrics.values())
