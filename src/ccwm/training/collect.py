"""The random episodes that a study starts with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ccwm.agents.policy import RandomPolicy
from ccwm.errors import UserError
from ccwm.readers import NUMBER, TEXT, read_record, read_table
from ccwm.replay.manifest import MANIFEST, Manifest
from ccwm.replay.store import EpisodeStore
from ccwm.seeds import collected_seed
from ccwm.settings.agent import Env
from ccwm.training.rollouts import play_episodes

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
        part, episode, seed, total, length, _ = self
        return {"part": part, "episode": episode, "seed": seed, "return": total, "length": length}


def collect_random(
    task: str,
    folder: Path,
    *,
    parts: dict[str, int],
    env: Env,
    seed: int,
    advance: Callable[[], None],
    workers: int = 1,
) -> list[RandomReturn]:
    """Fill a store in ``folder`` for each part with its number of episodes; ``advance`` is called after each.

    Each episode is a function of its own seed and they are stored in their order: ``workers`` changes no byte.
    """
    wanted = [(part, index) for part, episodes in parts.items() for index in range(episodes)]
    seeds = [collected_seed(seed, part, index) for part, index in wanted]
    stores = {part: EpisodeStore(folder / part) for part in parts}
    rows = []
    with contextlib.closing(play_episodes(task, env, RandomPolicy, seeds, workers=workers)) as rollouts:
        for (part, index), own, rollout in zip(wanted, seeds, rollouts, strict=True):
            stores[part].append(rollout.episode)
            length = len(rollout.episode.reward) - 1
            rows.append(RandomReturn(part, index, own, rollout.total, length, rollout.frames))
            advance()
    return rows


def summarise(rows: list[RandomReturn]) -> dict[str, float]:
    """The collection's metrics; returns are those of all episodes, env_steps those that training starts with."""
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


def check_collected(data: Path, episodes: int) -> None:
    """Refuse a store with another number of episodes than were collected: its manifest was cut or torn."""
    found = len(Manifest(data, create=False).entries) if (data / MANIFEST).is_file() else 0
    if found != episodes:
        raise UserError(
            f"{data / MANIFEST} names {found} of the {episodes} episodes that were collected",
            hint="restore it (`dvc checkout`), or collect again",
        )


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
