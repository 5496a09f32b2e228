"""The random episodes that a study begins with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ccwm.agents.policy import RandomPolicy
from ccwm.readers import NUMBER, TEXT, read_record, read_table
from ccwm.replay.store import EpisodeStore
from ccwm.seeds import episode_seed
from ccwm.settings.agent import Env
from ccwm.settings.schema import Render
from ccwm.training.rollouts import play
from ccwm.training.workers import make_envs

if TYPE_CHECKING:
    import pandas as pd


class RandomReturn(NamedTuple):
    """One episode of the random policy."""

    part: str
    episode: int
    seed: int
    total: float
    length: int
    frames: int

    def row(self) -> dict[str, object]:
        """As a line of ``returns.csv``."""
        return {
            "part": self.part,
            "episode": self.episode,
            "seed": self.seed,
            "return": self.total,
            "length": self.length,
        }


def collect_random(
    task: str,
    folder: Path,
    *,
    parts: dict[str, int],
    env: Env,
    render: Render,
    seed: int,
    advance: Callable[[], None],
    workers: int = 1,
) -> list[RandomReturn]:
    """Fill a store in ``folder`` for each part with its number of episodes; ``advance`` is called after each.

    Each episode is a function of its own seed and they are stored in their order: ``workers`` changes no byte.
    """
    wanted = [(part, index) for part, episodes in parts.items() for index in range(episodes)]
    stores = {part: EpisodeStore(folder / part) for part in parts}
    envs = make_envs(
        task,
        workers=min(workers, len(wanted)),
        size=env.size,
        action_repeat=env.action_repeat,
        time_limit=env.time_limit,
        quality=render.quality,
    )
    try:
        actions = envs.single_action_space.shape
        assert actions is not None
        policy = RandomPolicy(actions[0])
        rows = []
        for first in range(0, len(wanted), envs.num_envs):
            chosen = wanted[first : first + envs.num_envs]
            seeds = [episode_seed("collect", seed, part, index) for part, index in chosen]
            for (part, index), own, played in zip(chosen, seeds, play(envs, policy, seeds), strict=True):
                stores[part].append(played.episode)
                length = len(played.episode.reward) - 1
                rows.append(RandomReturn(part, index, own, played.total, length, played.frames))
                advance()
        return rows
    finally:
        envs.close()


def summarise(rows: list[RandomReturn]) -> dict[str, float]:
    """The collection's metrics; returns are those of all episodes, env_steps those that training begins with."""
    totals = np.array([row.total for row in rows])
    training = [row for row in rows if row.part == "train"]
    return {
        "episodes": len(training),
        "heldout": len(rows) - len(training),
        "steps": sum(row.length for row in training),
        "env_steps": sum(row.frames for row in training),
        "return_mean": float(totals.mean()),
        "return_sd": float(totals.std(ddof=1)) if len(totals) > 1 else 0.0,
    }


class Metrics(NamedTuple):
    """What ``metrics.json`` of a collection holds."""

    episodes: int
    heldout: int
    steps: int
    env_steps: int
    return_mean: float
    return_sd: float


def read_metrics(folder: Path) -> Metrics:
    """The metrics of a finished collection."""
    return read_record(folder / "metrics.json", Metrics)


def read_returns(folder: Path) -> pd.DataFrame:
    """The random policy's returns: a line for each episode."""
    numbers = dict.fromkeys(("episode", "seed", "return", "length"), NUMBER)
    return read_table(folder / "returns.csv", {"part": TEXT, **numbers})
