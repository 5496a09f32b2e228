"""Zero-shot transfer: the trained agent, greedy and unchanged, in changed worlds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ccwm.agents.export import Agent
from ccwm.envs.change import UNCHANGED, Change
from ccwm.seeds import episode_seed, named_seed
from ccwm.settings.schema import Transfer
from ccwm.studies.returns import agent_world, greedy_episode

UNCHANGED_ROW = "unchanged"


class Transferred(NamedTuple):
    """One greedy episode in one changed world; the return is in the original scale of the reward."""

    row: str
    draw: int
    seed: int
    change: str
    total: float

    def row_of_table(self) -> dict[str, object]:
        """As a line of ``returns.csv``."""
        return {
            "row": self.row,
            "draw": self.draw,
            "seed": self.seed,
            "change": self.change,
            "return": self.total,
        }


def draw_change(settings: Transfer, components: list[str], *, seed: int, draw: int) -> Change:
    """One changed world of a row, a function of its name, the seed and the draw."""
    rng = np.random.default_rng(named_seed("transfer", seed, "+".join(components), draw))
    fields = {"R": "reward", "M": "mass", "F": "friction", "S": "stiffness", "L": "layout"}
    lists: dict[str, list[Any]] = {
        "R": settings.reward,
        "M": settings.mass,
        "F": settings.friction,
        "S": settings.stiffness,
        "L": settings.layouts,
    }
    chosen: dict[str, Any] = {fields[c]: lists[c][rng.integers(len(lists[c]))] for c in components}
    return Change(units=settings.units, **chosen)


def describe(change: Change) -> str:
    """What differs, as a person reads it: `reward 2 · mass 0.5`."""
    named = {
        name: getattr(change, name)
        for name in ("reward", "mass", "friction", "stiffness", "layout")
        if getattr(change, name) != getattr(UNCHANGED, name)
    }
    return " · ".join(f"{name} {_short(value)}" for name, value in named.items()) or "nothing"


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(f"{number:g}" for number in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def transfer_returns(agent: Agent, settings: Transfer, *, seed: int, advance: Callable[[], None]) -> list[Transferred]:
    """Every row's draws, and as many episodes in the unchanged world; episode seeds depend on the draw alone."""
    rows: list[tuple[str, int, Change]] = [(UNCHANGED_ROW, draw, UNCHANGED) for draw in range(settings.draws)]
    for components in settings.rows:
        for draw in range(settings.draws):
            change = draw_change(settings, list(components), seed=seed, draw=draw)
            rows.append(("+".join(components), draw, change))
    results = []
    for row, draw, change in rows:
        world = agent_world(agent, change)
        try:
            chosen = episode_seed("transfer-episode", seed, draw)
            total = greedy_episode(agent, world, chosen).total / change.reward
        finally:
            world.close()
        results.append(Transferred(row, draw, chosen, describe(change), total))
        advance()
    return results


def summarise(results: list[Transferred]) -> dict[str, Any]:
    """Mean and spread of each row, the unchanged world apart."""
    rows: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(result.row for result in results):
        totals = np.array([result.total for result in results if result.row == name])
        sd = float(totals.std(ddof=1)) if len(totals) > 1 else 0.0
        rows[name] = {"mean": float(totals.mean()), "sd": sd, "n": len(totals)}
    return {UNCHANGED_ROW: rows.pop(UNCHANGED_ROW), "rows": rows}
