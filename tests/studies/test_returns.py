from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ccwm.agents.export import Agent, load_agent, save_agent
from ccwm.errors import UserError
from ccwm.studies.returns import (
    Return,
    best_possible,
    greedy_returns,
    read_metrics,
    read_returns,
    summarise,
    write_evaluation,
)

from .trained_agent import small_agent


def returned(*totals: float, success: bool | None = None) -> list[Return]:
    return [Return(index, 7, total, 100, success) for index, total in enumerate(totals)]


def test_a_summary_by_hand():
    got = summarise(returned(0.0, 10.0, 20.0, 90.0), [10.0, 30.0], best=100.0)
    assert got.return_mean == 30.0
    assert got.return_sd == pytest.approx((5000 / 3) ** 0.5)  # Σ(x − 30)² = 900 + 400 + 100 + 3600, over n − 1
    assert got.return_iqm == 15.0  # one of four is cut from each end
    assert got.random_mean == 20.0
    assert got.score == 0.125  # (30 − 20) / (100 − 20)
    assert got.return_low < 30.0 < got.return_high
    assert got.success_rate is None


def test_success_is_a_share_where_there_is_a_goal():
    rows = [*returned(1.0, success=True), *returned(2.0, 3.0, success=False)]
    assert summarise(rows, [0.0], best=None).success_rate == pytest.approx(1 / 3)


def test_no_score_without_a_best_possible_return():
    assert summarise(returned(1.0), [0.0], best=None).score is None
    assert best_possible("gym:Pendulum-v1", 200) is None
    assert best_possible("walker_walk", 1000) == best_possible("maze_open", 1000) == 1000.0


def played(agent: Agent, folder: Path, *, seed: int = 0, advance: Callable[[], None] = lambda: None) -> list[Return]:
    return greedy_returns(agent, exported=folder, episodes=3, seed=seed, advance=advance)


def test_greedy_returns_are_a_function_of_agent_and_seed(tmp_path: Path):
    agent, told = small_agent(), []
    first = played(agent, tmp_path, advance=lambda: told.append(1))
    assert first == played(agent, tmp_path)
    assert len(told) == 3
    assert len({row.total for row in first}) == 3  # three seeds, three starts
    assert [row.seed for row in first] != [row.seed for row in played(agent, tmp_path, seed=1)]
    assert {row.length for row in first} == {30}  # 60 frames, two for each action


@pytest.mark.parametrize("actors", [1, 2])
def test_the_actors_of_an_agent_evaluate_it_and_their_number_changes_no_bit(tmp_path: Path, actors: int):
    agent = small_agent(observation="state")
    train = agent.card.config.train.model_copy(update={"actors": actors})
    card = agent.card.model_copy(update={"config": agent.card.config.model_copy(update={"train": train})})
    save_agent(tmp_path, agent.learner, card)
    found, workers = load_agent(tmp_path), set[int]()

    def advance() -> None:
        workers.update(process.pid or 0 for process in multiprocessing.active_children())

    assert played(found, tmp_path, advance=advance) == played(agent, tmp_path)
    assert len(workers) == actors
    assert multiprocessing.active_children() == []


def test_files_are_read_as_they_were_written(tmp_path: Path):
    rows = returned(1.0, 2.5, success=True)
    random = pd.DataFrame([{"part": "train", "episode": 0, "seed": 3, "return": 0.1, "length": 9}])
    metrics = summarise(rows, [0.1], best=None)
    write_evaluation(tmp_path, metrics, rows, random)
    assert read_metrics(tmp_path) == metrics
    frame = read_returns(tmp_path)
    assert frame["policy"].tolist() == ["agent", "agent", "random"]
    assert frame["return"].tolist() == [1.0, 2.5, 0.1]
    frame.drop(columns="policy").to_csv(tmp_path / "returns.csv", index=False)
    with pytest.raises(UserError, match=r"returns.csv lacks the column 'policy'"):
        read_returns(tmp_path)
