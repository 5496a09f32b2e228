"""Greedy returns of a trained agent beside the random policy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ccwm.agents.export import Agent
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.envs.change import UNCHANGED, Change
from ccwm.envs.factory import make_env
from ccwm.envs.tasks import MAZE_TASKS, SUITE_TASKS
from ccwm.envs.vector import World
from ccwm.ops.statistics import bootstrap_mean, interquartile_mean
from ccwm.seeds import episode_seed
from ccwm.training.rollouts import Played, play


class Return(NamedTuple):
    """One greedy episode."""

    episode: int
    seed: int
    total: float
    length: int
    success: bool | None

    def row(self) -> dict[str, object]:
        """As a line of ``returns.csv``."""
        return {
            "episode": self.episode,
            "seed": self.seed,
            "policy": "agent",
            "return": self.total,
            "length": self.length,
        }


def agent_world(agent: Agent, change: Change = UNCHANGED, *, task: str | None = None) -> World:
    """The world that the agent was trained in, a changed one, or that of another task, as the agent sees worlds."""
    card = agent.card
    return make_env(
        task or card.task,
        size=card.env.size,
        action_repeat=card.env.action_repeat,
        time_limit=card.env.time_limit,
        quality=card.render.quality,
        change=change,
    )


def greedy_episode(agent: Agent, world: World, seed: int) -> Played:
    """One greedy episode, a function of the agent, the world and the seed."""
    (played,) = play([world], RecurrentPolicy(agent.world_model, agent.actor_critic.actor), [seed])
    return played


def greedy_returns(agent: Agent, *, episodes: int, seed: int, advance: Callable[[], None]) -> list[Return]:
    """Greedy episodes whose seeds are the same for every variant of ``seed``; ``advance`` is called after each."""
    world = agent_world(agent)
    try:
        rows = []
        for index in range(episodes):
            chosen = episode_seed("evaluate", seed, index)
            played = greedy_episode(agent, world, chosen)
            rows.append(Return(index, chosen, played.total, len(played.episode.reward) - 1, played.success))
            advance()
        return rows
    finally:
        world.close()


def best_possible(task: str, time_limit: int) -> float | None:
    """The most that an episode can return: one a simulator frame in the suite and in the maze, unknown elsewhere."""
    return float(time_limit) if task in SUITE_TASKS or task in MAZE_TASKS else None


def summarise(rows: list[Return], random_returns: list[float], *, best: float | None) -> dict[str, float | None]:
    """The evaluation's metrics; intervals are 95 % bootstrap intervals of the mean over episodes."""
    totals, random = np.array([row.total for row in rows]), np.array(random_returns)
    agent_interval, random_interval = bootstrap_mean(totals, seed=0), bootstrap_mean(random, seed=1)
    successes = [row.success for row in rows if row.success is not None]
    score = None if best is None else float((totals.mean() - random.mean()) / (best - random.mean()))
    return {
        "episodes": len(rows),
        "return_mean": float(totals.mean()),
        "return_sd": float(totals.std(ddof=1)) if len(totals) > 1 else 0.0,
        "return_iqm": interquartile_mean(totals),
        "return_low": agent_interval.low,
        "return_high": agent_interval.high,
        "random_mean": float(random.mean()),
        "random_sd": float(random.std(ddof=1)) if len(random) > 1 else 0.0,
        "random_low": random_interval.low,
        "random_high": random_interval.high,
        "best_possible": best,
        "score": score,
        "success_rate": float(np.mean(successes)) if successes else None,
    }
