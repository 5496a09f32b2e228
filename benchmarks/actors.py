"""What `train.actors` gains: environment steps per second of training without actors and with them.

    python benchmarks/actors.py --json benchmarks/actors.json

The quick preset's CCWM with short episodes, from states and from pixels of 32 × 32; each run in a process of its own,
all in turn, in each round. The clock starts at the first update and stops at the last: no process's start counts.
Wants as many free cores as there are processes: one for the updates, and one for each actor.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from common import append_json, collect, conditions, make_parser, run_alone
from rich.console import Console
from rich.table import Table

from ccwm.cells import Cell
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.section import Section
from ccwm.training.loop import train

TASK = "walker_walk"
TIERS: dict[str, dict[str, object]] = {
    "states": {"observation": "state"},
    "pixels": {"observation": "pixels", "size": 32},
}
FRAMES, CYCLE, UPDATES = 200, 400, 16
"""Frames of an episode; frames and updates of a cycle, in quick's proportion."""


class Row(NamedTuple):
    """Environment steps per second of each round, and the median round's ratio to those without actors."""

    tier: str
    actors: int
    env_steps_per_second: list[float]
    ratio: float


def settings_of(tier: str, *, actors: int, cycles: int) -> Settings:
    """The quick preset with short episodes, and no learning curve."""
    quick = load_preset("quick")
    steps = {"env_steps": quick.collect.episodes * FRAMES + cycles * CYCLE, "evaluate_every": 10**6}
    cycle = {"update_every": CYCLE, "updates": UPDATES, "log_every": UPDATES, "pretrain": UPDATES, "actors": actors}
    changes: dict[str, dict[str, object]] = {"env": {**TIERS[tier], "time_limit": FRAMES}, "train": {**steps, **cycle}}
    return quick.model_copy(update={name: changed(getattr(quick, name), of) for name, of in changes.items()})


def changed(section: Section, values: dict[str, object]) -> Section:
    """A section with other values, checked."""
    return type(section).model_validate({**section.model_dump(), **values})


def steps_per_second(tier: str, actors: int, cycles: int, folder: Path) -> float:
    """Environment steps over seconds, from the first logged update to the last."""
    settings, cell = settings_of(tier, actors=actors, cycles=cycles), Cell("train", TASK, "ccwm", 0)
    if not (folder / tier).exists():
        collect(settings, cell.of("collect"), folder / tier, "train")
    seen: list[tuple[float, int]] = []

    def log(_: object, env_steps: int) -> None:
        seen.append((time.perf_counter(), env_steps))

    with tempfile.TemporaryDirectory(dir=folder) as work:
        data, label = folder / tier / "train", f"{actors} actors"
        train(settings.agent_config, cell, data=data, work=Path(work), log=log, label=label)
    (began, first), *_, (ended, last) = seen
    return (last - first) / (ended - began)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--actors", type=int, nargs="+", default=[1], help="numbers of actors to compare with none")
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    facts, rows = conditions(1), list[Row]()
    with tempfile.TemporaryDirectory() as name:
        for tier in TIERS:
            rates: dict[int, list[float]] = {actors: [] for actors in (0, *given.actors)}
            for _ in range(given.rounds):
                for actors, found in rates.items():
                    found.append(run_alone(steps_per_second, tier, actors, given.cycles, Path(name)))
            for actors, found in rates.items():
                ratios = [rate / none for rate, none in zip(found, rates[0], strict=True)]
                rows.append(Row(tier, actors, found, median(ratios)))
    table = Table("agent sees", "actors", "environment steps/s", "× none")
    for row in rows:
        table.add_row(row.tier, str(row.actors), f"{median(row.env_steps_per_second):.0f}", f"{row.ratio:.2f}")
    Console().print(table)
    if given.json:
        append_json(
            given.json,
            "measurements",
            {"rows": [row._asdict() for row in rows], "cycles": given.cycles, "conditions": facts},
        )


if __name__ == "__main__":
    main()
