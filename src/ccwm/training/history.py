"""What a training run reports: learning curve, losses and episodes as rows; their files are written and read here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ccwm.files import published, write_csv, write_json
from ccwm.readers import NUMBER, OPTIONAL, read_record, read_table

if TYPE_CHECKING:
    import pandas as pd

    from ccwm.training.module import Counters  # the report reads histories without Lightning

COUNTERS = ("env_steps", "updates")
"""The first columns of ``curve.csv`` and ``losses.csv``; every other column of ``losses.csv`` is a term."""

Row = dict[str, float]
Log = Callable[[Mapping[str, float], int], None]
"""Takes metrics by name and the environment steps that they belong to."""


@dataclass
class History:
    """Rows in the order in which they were measured; ``log`` is called with each as it comes."""

    log: Log = lambda metrics, env_steps: None
    curve: list[Row] = field(default_factory=list)
    losses: list[Row] = field(default_factory=list)
    episodes: list[Row] = field(default_factory=list)

    def add_evaluation(
        self, env_steps: int, updates: int, returns: list[float], successes: list[bool], skill: Row
    ) -> None:
        """A point of the learning curve; ``skill`` holds further columns."""
        row: Row = {
            "env_steps": env_steps,
            "updates": updates,
            "return_mean": float(np.mean(returns)),
            "return_sd": float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0,
            "episodes": len(returns),
        }
        if successes:
            row["success_rate"] = float(np.mean(successes))
        row |= skill
        self.curve.append(row)
        self.log({f"evaluation/{name}": row[name] for name in row if name not in ("env_steps", "episodes")}, env_steps)

    def add_losses(self, env_steps: int, updates: int, means: dict[str, float]) -> None:
        """Terms averaged over the updates since the last row."""
        self.losses.append({"env_steps": env_steps, "updates": updates, **means})
        self.log({**means, "updates": updates}, env_steps)

    def add_episode(self, env_steps: int, total: float, length: int) -> None:
        """An episode that the exploring agent played."""
        self.episodes.append({"env_steps": env_steps, "return": total, "length": length})
        self.log({"episode/return": total, "episode/length": length}, env_steps)

    def state_dict(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return {"curve": self.curve, "losses": self.losses, "episodes": self.episodes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint's rows."""
        self.curve, self.losses, self.episodes = (list(state[name]) for name in ("curve", "losses", "episodes"))


def mean_height(at: np.ndarray, values: np.ndarray) -> float:
    """∫ values d(at) / (width of at), by trapezia; of a single point, its value.   [N], [N] → scalar."""
    width = at[-1] - at[0]
    return float(np.trapezoid(values, at) / width) if width else float(values[-1])


def summarise_curve(curve: list[Row]) -> Row:
    """Last, best and mean return of a learning curve; the mean is the area under it, divided by its width."""
    steps = np.array([row["env_steps"] for row in curve])
    returns = np.array([row["return_mean"] for row in curve])
    return {
        "return_final": float(returns[-1]),
        "return_best": float(returns.max()),
        "return_auc": mean_height(steps, returns),
    }


def summarise(history: History, counters: Counters) -> Row:
    """The run's metrics."""
    spent = {"env_steps": counters.env_steps, "updates": counters.updates, "episodes": counters.episodes}
    return {**spent, **summarise_curve(history.curve)}


def write_history(directory: Path, history: History, metrics: Row) -> None:
    """Write ``metrics.json``, ``curve.csv``, ``losses.csv`` and ``episodes.csv``, whole or not at all."""
    with published(directory) as folder:
        write_json(folder / "metrics.json", metrics)
        write_csv(folder / "curve.csv", history.curve)
        write_csv(folder / "losses.csv", history.losses)
        write_csv(folder / "episodes.csv", history.episodes)


class Metrics(NamedTuple):
    """What ``metrics.json`` of a training run holds."""

    env_steps: int
    updates: int
    episodes: int
    return_final: float
    return_best: float
    return_auc: float


def read_metrics(folder: Path) -> Metrics:
    """The metrics of a finished run."""
    return read_record(folder / "metrics.json", Metrics)


def read_curve(folder: Path) -> pd.DataFrame:
    """The learning curve: a line for each evaluation."""
    numbers = dict.fromkeys((*COUNTERS, "return_mean", "return_sd"), NUMBER)
    return read_table(folder / "curve.csv", numbers, others=OPTIONAL)


def read_losses(folder: Path) -> pd.DataFrame:
    """The averaged losses: a line for each time that they were logged."""
    return read_table(folder / "losses.csv", dict.fromkeys(COUNTERS, NUMBER), others=OPTIONAL)
