"""Greedy returns of a trained agent beside the random policy's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ccwm.agents.export import Agent, load_agent
from ccwm.agents.policy import Policy
from ccwm.envs.tasks import MAZE_TASKS, SUITE_TASKS
from ccwm.files import write_csv, write_json
from ccwm.ops.statistics import bootstrap_mean, interquartile_mean, sample_sd
from ccwm.readers import NUMBER, TEXT, read_record, read_table
from ccwm.seeds import episode_seed
from ccwm.studies.agents import play
from ccwm.training.rollouts import EpisodeWorkers, FromFiles, Rollout, StartWorkers


class Return(NamedTuple):
    """One greedy episode."""

    episode: int
    seed: int
    total: float
    length: int
    success: bool | None


class Metrics(NamedTuple):
    """What ``metrics.json`` holds; intervals are 95 % bootstrap intervals of the mean over episodes."""

    episodes: int
    return_mean: float
    return_sd: float
    return_iqm: float
    return_low: float
    return_high: float
    random_mean: float
    random_sd: float
    random_low: float
    random_high: float
    best_possible: float | None
    score: float | None
    success_rate: float | None


def greedy_returns(
    agent: Agent,
    *,
    exported: Path,
    episodes: int,
    seed: int,
    advance: Callable[[], None],
    start_workers: StartWorkers = EpisodeWorkers,
) -> list[Return]:
    """Greedy episodes whose seeds are the same for every variant of ``seed``; ``advance`` is called after each.

    An agent that was trained with actors is evaluated by as many, which ``start_workers`` starts and which read it from
    ``exported``.
    """
    seeds = [episode_seed("evaluate", seed, index) for index in range(episodes)]
    rows = []
    has_actors = agent.card.config.train.actors
    with closing(_play_by_actors(agent, exported, seeds, start_workers) if has_actors else play(agent, seeds)) as of:
        for index, played in enumerate(of):
            rows.append(Return(index, seeds[index], played.total, len(played.episode.reward) - 1, played.success))
            advance()
    return rows


def _play_by_actors(
    agent: Agent, exported: Path, seeds: Sequence[int], start_workers: StartWorkers
) -> Generator[Rollout]:
    """Greedy episodes in the order of their seeds; an actor computes on one thread, whatever their number."""
    config = agent.card.config
    hint = "train with fewer actors if memory is short; with 0 the stage's own process plays"
    with closing(start_workers(agent.task, config.env, min(config.train.actors, len(seeds)), hint=hint)) as actors:
        make_policy = FromFiles(exported.resolve(), partial(_greedy_policy, task=agent.task))
        waiting = deque([actors.submit(make_policy, seed) for seed in seeds])
        while waiting:
            yield actors.result(waiting.popleft())


@cache
def _greedy_policy(exported: Path, _: int, *, task: str) -> Policy:
    """The policy of an exported agent, read once by each actor."""
    return load_agent(exported, task=task).policy()


def best_possible(task: str, time_limit: int) -> float | None:
    """The most that an episode can return: one a simulator frame in the suite and in the maze, unknown elsewhere."""
    return float(time_limit) if task in SUITE_TASKS or task in MAZE_TASKS else None


def summarise(rows: Sequence[Return], random_returns: Sequence[float], *, best: float | None) -> Metrics:
    """The evaluation's metrics; the score is 0 for the random policy and 1 for the best possible return."""
    totals, random = np.array([row.total for row in rows]), np.array(random_returns)
    successes = [row.success for row in rows if row.success is not None]
    return Metrics(
        episodes=len(rows),
        **_spread("return", totals, seed=0),
        return_iqm=float(interquartile_mean(totals)),
        **_spread("random", random, seed=1),
        best_possible=best,
        score=None if best is None else float((totals.mean() - random.mean()) / (best - random.mean())),
        success_rate=float(np.mean(successes)) if successes else None,
    )


def _spread(name: str, values: np.ndarray, *, seed: int) -> dict[str, Any]:
    """Mean, standard deviation and the mean's interval, as ``Metrics`` names them."""
    found = {"mean": float(values.mean()), "sd": sample_sd(values), **bootstrap_mean(values, seed=seed)._asdict()}
    return {f"{name}_{of}": value for of, value in found.items()}


def write_evaluation(folder: Path, metrics: Metrics, rows: Sequence[Return], random: pd.DataFrame) -> None:
    """Write ``metrics.json``, and ``returns.csv`` with the agent's episodes and then the random policy's."""
    write_json(folder / "metrics.json", metrics._asdict())
    own = [
        {"episode": row.episode, "seed": row.seed, "policy": "agent", "return": row.total, "length": row.length}
        for row in rows
    ]
    chance = random.assign(policy="random").to_dict("records")
    write_csv(folder / "returns.csv", [*own, *({str(name): of for name, of in row.items()} for row in chance)])


def read_metrics(folder: Path) -> Metrics:
    """The metrics of a finished evaluation."""
    return read_record(folder / "metrics.json", Metrics)


def read_returns(folder: Path) -> pd.DataFrame:
    """Returns by episode, of the policies `agent` and `random`."""
    numbers = dict.fromkeys(("episode", "seed", "return", "length"), NUMBER)
    return read_table(folder / "returns.csv", {"policy": TEXT, **numbers})
