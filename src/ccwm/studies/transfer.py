"""Zero-shot transfer: the trained agent, greedy and unchanged, in changed environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ccwm.agents.export import Agent
from ccwm.envs.change import UNCHANGED, Change
from ccwm.files import write_csv, write_json
from ccwm.ops.statistics import sample_sd
from ccwm.readers import NUMBER, TEXT, BadResult, is_number, read_object, read_table
from ccwm.seeds import episode_seed, named_seed
from ccwm.settings.schema import Transfer
from ccwm.studies.agents import agent_env, greedy_episode

UNCHANGED_ROW = "unchanged"
COMPONENTS = {"R": "reward", "M": "mass", "F": "friction", "S": "stiffness", "L": "layout"}
"""What each letter of a row changes."""


class Transferred(NamedTuple):
    """One greedy episode in one changed environment; the return is in the original scale of the reward."""

    row: str
    draw: int
    seed: int
    change: str
    total: float


class RowMetrics(NamedTuple):
    """The returns of one row of changes."""

    mean: float
    sd: float
    n: int


class Metrics(NamedTuple):
    """What ``metrics.json`` holds: the rows of changes by name, the unchanged environment apart."""

    unchanged: RowMetrics
    rows: dict[str, RowMetrics]


def draw_change(settings: Transfer, components: list[str], *, seed: int, draw: int) -> Change:
    """One changed environment of a row, a function of its name, the seed and the draw."""
    rng = np.random.default_rng(named_seed("transfer", seed, "+".join(components), draw))
    lists: dict[str, list[Any]] = {
        "R": settings.reward,
        "M": settings.mass,
        "F": settings.friction,
        "S": settings.stiffness,
        "L": settings.layouts,
    }
    chosen: dict[str, Any] = {COMPONENTS[c]: lists[c][rng.integers(len(lists[c]))] for c in components}
    return Change(units=settings.units, **chosen)


def describe(change: Change) -> str:
    """What differs, as a person reads it: `reward 2 · mass 0.5`."""
    values = {name: getattr(change, name) for name in COMPONENTS.values()}
    changed = {name: value for name, value in values.items() if value != getattr(UNCHANGED, name)}
    return " · ".join(f"{name} {_short(value)}" for name, value in changed.items()) or "nothing"


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(f"{number:g}" for number in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def transfer_returns(agent: Agent, settings: Transfer, *, seed: int, advance: Callable[[], None]) -> list[Transferred]:
    """Every row's draws, and as many unchanged episodes; episode seeds depend on the draw alone."""
    rows: list[tuple[str, int, Change]] = [(UNCHANGED_ROW, draw, UNCHANGED) for draw in range(settings.draws)]
    for components in settings.rows:
        for draw in range(settings.draws):
            change = draw_change(settings, list(components), seed=seed, draw=draw)
            rows.append(("+".join(components), draw, change))
    results = []
    for row, draw, change in rows:
        chosen = episode_seed("transfer-episode", seed, draw)
        with closing(agent_env(agent, change)) as env:
            total = greedy_episode(agent, env, chosen).total / change.reward
        results.append(Transferred(row, draw, chosen, describe(change), total))
        advance()
    return results


def summarise(results: Sequence[Transferred]) -> Metrics:
    """Mean and spread of each row."""
    rows = {}
    for name in dict.fromkeys(result.row for result in results):
        totals = np.array([result.total for result in results if result.row == name])
        rows[name] = RowMetrics(float(totals.mean()), sample_sd(totals), len(totals))
    return Metrics(rows.pop(UNCHANGED_ROW), rows)


def write_transfer(folder: Path, metrics: Metrics, results: Sequence[Transferred]) -> None:
    """Write ``metrics.json`` and ``returns.csv``."""
    rows = {name: row._asdict() for name, row in metrics.rows.items()}
    write_json(folder / "metrics.json", {UNCHANGED_ROW: metrics.unchanged._asdict(), "rows": rows})
    renamed = ({"return" if name == "total" else name: of for name, of in each._asdict().items()} for each in results)
    write_csv(folder / "returns.csv", renamed)


def read_metrics(folder: Path) -> Metrics:
    """The metrics of a finished study."""
    path = folder / "metrics.json"
    content = read_object(path)

    def row(name: str, value: Any) -> RowMetrics:
        numbers: list[Any] = [value.get(key) if isinstance(value, dict) else None for key in RowMetrics._fields]
        if not all(map(is_number, numbers)):
            raise BadResult(f"{path}: {name!r} does not hold the numbers {', '.join(RowMetrics._fields)}")
        return RowMetrics(*numbers)

    rows = content.get("rows")
    if not isinstance(rows, dict):
        raise BadResult(f"{path} lacks the key 'rows'")
    unchanged = row(UNCHANGED_ROW, content.get(UNCHANGED_ROW))
    return Metrics(unchanged, {name: row(f"rows/{name}", value) for name, value in rows.items()})


def read_returns(folder: Path) -> pd.DataFrame:
    """Returns by row and draw."""
    numbers = dict.fromkeys(("draw", "seed", "return"), NUMBER)
    return read_table(folder / "returns.csv", {"row": TEXT, "change": TEXT, **numbers})
