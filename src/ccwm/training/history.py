"""What a training run reports: the learning curve and the averaged losses, as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ccwm.readers import NUMBER, read_record, read_table

if TYPE_CHECKING:
    import pandas as pd

COUNTERS = ("env_steps", "updates")
"""The first columns of ``curve.csv`` and ``losses.csv``; every other column of ``losses.csv`` is a term."""

Row = dict[str, float]
Log = Callable[[Mapping[str, float], int], None]
"""Takes metrics by name and the environment steps that they belong to."""


@dataclass
class History:
    """Rows in the order in which they were measured; ``log`` hears of each as it comes."""

    log: Log = lambda metrics, env_steps: None
    curve: list[Row] = field(default_factory=list)
    losses: list[Row] = field(default_factory=list)
    episodes: list[Row] = field(default_factory=list)

    def add_evaluation(self, env_steps: int, updates: int, returns: list[float], successes: list[bool]) -> None:
        """A point of the learning curve."""
        row: Row = {
            "env_steps": env_steps,
            "updates": updates,
            "return_mean": float(np.mean(returns)),
            "return_sd": float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0,
            "episodes": len(returns),
        }
        if successes:
            row["success_rate"] = float(np.mean(successes))
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

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return {"curve": self.curve, "losses": self.losses, "episodes": self.episodes}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint's rows."""
        self.curve, self.losses, self.episodes = (list(state[name]) for name in ("curve", "losses", "episodes"))


def mean_height(at: np.ndarray, values: np.ndarray) -> float:
    """∫ values d(at) / (width of at), by trapezia; of a single point, its value.   [N], [N] → scalar."""
    width = at[-1] - at[0]
    return float(np.trapezoid(values, at) / width) if width else float(values[-1])


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
    return read_table(folder / "curve.csv", dict.fromkeys((*COUNTERS, "return_mean", "return_sd"), NUMBER))


def read_losses(folder: Path) -> pd.DataFrame:
    """The averaged losses: a line for each time that they were logged."""
    return read_table(folder / "losses.csv", dict.fromkeys(COUNTERS, NUMBER))
