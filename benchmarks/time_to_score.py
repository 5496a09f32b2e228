"""How long until an agent is any good? Minutes on one core until walker walk returns 500 and cheetah run 250.

    python benchmarks/time_to_score.py
    python benchmarks/time_to_score.py --tasks walker_walk --variants sac --seeds 0 1 2 --json sac.json

SAC, Dreamer and CCWM learn from states with one thread and play in the same process, each until the greedy return on
its learning curve reaches the goal, or its budget ends. The minutes are processor time, which other work on the machine
hardly changes, and those of the clock beside them; both contain the evaluations, and neither the random episodes.

A line is printed and written for each agent as it ends. Run again with the same files, the script leaves out what is
written and resumes what was interrupted, with the minutes that it had taken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import Spent, append_json, collect, conditions, make_parser

from ccwm.cells import Cell, settings_hash
from ccwm.files import published, write_json
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.training.loop import train
from ccwm.training.work_directory import exclusive

GOALS = {"walker_walk": 500.0, "cheetah_run": 250.0}
RETURN = "evaluation/return_mean"


class Reached(Exception):
    """The goal is reached, and training ends here."""


def one_core(settings: Settings) -> Settings:
    """The same agent, trained and played on one core of a CPU."""
    trainer = settings.trainer.model_copy(update={"accelerator": "cpu", "threads": 1, "devices": 1})
    return settings.model_copy(update={"trainer": trainer, "train": settings.train.model_copy(update={"actors": 0})})


def measure(settings: Settings, cell: Cell, root: Path) -> dict[str, Any]:
    """Train one agent until it reaches the goal of its task, or its budget ends."""
    data, work, goal = root / cell.data, root / cell.key, GOALS[cell.task]
    if not data.exists():
        with published(data) as folder:
            collect(settings, cell, folder, "train")
    work.mkdir(parents=True, exist_ok=True)
    path = work / "spent.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"spent": [0.0, 0.0], "curve": {}}
    before, began = Spent(*known["spent"]), Spent.now()
    curve: dict[str, dict[str, float]] = known["curve"]

    def spent() -> Spent:
        session = Spent.now().since(began)
        return Spent(before.clock + session.clock, before.processor + session.processor)

    def log(metrics: Mapping[str, float], env_steps: int) -> None:
        if RETURN in metrics:  # a resumed run may measure a point again
            point = {"env_steps": env_steps, "return_mean": metrics[RETURN], "minutes": spent().processor / 60}
            curve.setdefault(str(env_steps), point)
        write_json(path, {"spent": [*spent()], "curve": curve})
        if metrics.get(RETURN, -math.inf) >= goal:
            raise Reached

    try:
        with exclusive(work):
            train(settings.agent_config, cell, data=data / "train", work=work, log=log, label=cell.title)
        reached = False
    except Reached:
        reached = True
    *_, last = curve.values()
    return {
        **cell.tags,
        "settings_hash": settings_hash(settings, cell),
        "goal": goal,
        "reached": reached,
        **last,
        "minutes_of_the_clock": round(spent().clock / 60, 2),
        "curve": [*curve.values()],
    }


def written(path: Path, settings: Settings, cell: Cell) -> bool:
    """Whether the file has this agent with these settings already."""
    rows = json.loads(path.read_text())["agents"] if path.exists() else []
    wanted = {**cell.tags, "settings_hash": settings_hash(settings, cell)}
    return any(wanted.items() <= row.items() for row in rows)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="states-sac", help="settings to train with; default: states-sac")
    parser.add_argument("--tasks", nargs="*", choices=GOALS, default=[*GOALS], help="default: both")
    parser.add_argument("--variants", nargs="*", default=["sac", "dreamer", "ccwm"], help="default: sac, dreamer, ccwm")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0], help="default: 0")
    parser.add_argument("--work", type=Path, default=Path(".work/time_to_score"), help="where unfinished runs are kept")
    parser.set_defaults(json=Path("benchmarks/time_to_score.json"))
    given = parser.parse_args()
    base = load_preset(given.preset)
    pairs = [(task, seed) for task in given.tasks for seed in given.seeds]
    cells = [Cell("train", task, variant, seed) for task, seed in pairs for variant in given.variants]
    for number, cell in enumerate(cells, 1):
        settings = one_core(resolve(base, cell.variant))
        if written(given.json, settings, cell):
            print(f"{number} of {len(cells)}: {cell.title} is written already")
            continue
        print(f"{number} of {len(cells)}: {cell.title}", flush=True)
        facts = conditions(settings.trainer.threads)
        row = measure(settings, cell, given.work)
        append_json(given.json, "agents", {**row, "machine": facts})
        outcome = f"{'reached' if row['reached'] else 'did not reach'} {row['goal']:g}"
        print(f"{cell.title} {outcome} after {row['env_steps']:,} steps, {row['minutes']:.1f} minutes of one core")


if __name__ == "__main__":
    main()
