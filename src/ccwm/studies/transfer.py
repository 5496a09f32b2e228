"""Zero-shot transfer: the trained agent, greedy and unchanged, in changed environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import ConfigDict, TypeAdapter, ValidationError

from ccwm.agents.export import Agent
from ccwm.envs.change import UNCHANGED, Change
from ccwm.files import write_csv, write_json
from ccwm.ops.statistics import sample_sd
from ccwm.readers import NUMBER, TEXT, BadResult, read_object, read_table
from ccwm.seeds import episode_seed, named_seed
from ccwm.settings.schema import Transfer
from ccwm.studies.agents import play

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


METRICS = TypeAdapter(Metrics, config=ConfigDict(strict=True, allow_inf_nan=False))


def draw_change(settings: Transfer, components: Sequence[str], *, seed: int, draw: int) -> Change:
    """One changed environment of a row, a function of its name, the seed and the draw."""
    rng = np.random.default_rng(named_seed("transfer", seed, "+".join(components), draw))
    values = {**dict(settings), "layout": settings.layouts}
    chosen: dict[str, Any] = {}
    for name in (COMPONENTS[letter] for letter in components):
        chosen[name] = values[name][rng.integers(len(values[name]))]
    return Change(units=settings.units, **chosen)


def describe(change: Change) -> str:
    """What differs, as a person reads it: `reward 2 · mass 0.5 · friction 1.5/4/3`."""
    words = []
    for name in COMPONENTS.values():
        value = getattr(change, name)
        if value != getattr(UNCHANGED, name):
            parts = value if isinstance(value, tuple) else (value,)
            words.append(f"{name} {'/'.join(part if isinstance(part, str) else f'{part:g}' for part in parts)}")
    return " · ".join(words) or "nothing"


def transfer_returns(agent: Agent, settings: Transfer, *, seed: int, advance: Callable[[], None]) -> list[Transferred]:
    """As many unchanged episodes as every row has draws, then the rows'; episode seeds depend on the draw alone."""
    results = []
    for components in ((), *settings.rows):
        for draw in range(settings.draws):
            change = draw_change(settings, components, seed=seed, draw=draw) if components else UNCHANGED
            chosen = episode_seed("transfer-episode", seed, draw)
            (played,) = play(agent, [chosen], change=change)
            row, total = "+".join(components) or UNCHANGED_ROW, played.total / change.reward
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
    try:
        return METRICS.validate_python(read_object(path))
    except ValidationError as error:
        found = error.errors()[0]
        raise BadResult(f"{path}: {'/'.join(map(str, found['loc']))!r}: {found['msg']}") from None


def read_returns(folder: Path) -> pd.DataFrame:
    """Returns by row and draw."""
    numbers = dict.fromkeys(("draw", "seed", "return"), NUMBER)
    return read_table(folder / "returns.csv", {"row": TEXT, "change": TEXT, **numbers})
