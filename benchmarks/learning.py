"""Does an agent learn? Collect, train, evaluate and predict with a preset, for each task, variant and seed.

    python benchmarks/learning.py --preset quick --seeds 0 1 2 --json benchmarks/learning.json
    python benchmarks/learning.py --preset maze-one-way --variants ccwm --work .work/learning

Prints a line for each agent and adds it to the JSON file: what it was trained with, the learning curve, the machine and
the time it took. With ``--work``, a run that was interrupted resumes, as the train stage does.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from common import append_json, collect, conditions, make_parser, train_cell

from ccwm.agents.export import Agent
from ccwm.cells import Cell, settings_hash
from ccwm.files import published, write_json
from ccwm.replay.store import EpisodeStore
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.studies import prediction, returns
from ccwm.studies.agents import ready_agent
from ccwm.training.work_directory import exclusive

CURVE = (
    "env_steps",
    "updates",
    "return_mean",
    "success_rate",
    "retrace_skill_latent",
    "retrace_skill_observation",
)
PREDICTED = (
    "useful_steps_of_mean",
    "useful_steps_of_mean_low",
    "useful_steps_of_mean_high",
    "useful_steps_median",
    "useful_steps_low",
    "useful_steps_high",
    "error_mean",
    "baseline_error_mean",
    "ssim_mean",
)


def measure(settings: Settings, cell: Cell, root: Path) -> dict[str, Any]:
    """Everything that the pipeline does to one agent, without the pipeline."""
    assert cell.seed is not None
    chance = random_returns(settings, cell, root)
    spent, began = root / "seconds.json", time.monotonic()
    before = json.loads(spent.read_text())["seconds"] if spent.exists() else 0.0

    def log(*_: object) -> None:
        write_json(spent, {"seconds": before + time.monotonic() - began})

    trained = train_cell(settings, cell, data=root / cell.data, root=root, log=log)
    seconds = before + time.monotonic() - began
    agent = ready_agent(cell, settings.trainer, root)
    episodes = settings.evaluate.episodes
    rows = returns.greedy_returns(
        agent, exported=root / cell.model, episodes=episodes, seed=cell.seed, advance=lambda: None
    )
    best = returns.best_possible(cell.task, settings.env.time_limit)
    return {
        "task": cell.task,
        "variant": cell.variant,
        "seed": cell.seed,
        "settings_hash": settings_hash(settings, cell),
        "env_steps": trained.module.counters.env_steps,
        "updates": trained.module.counters.updates,
        "seconds": round(seconds, 1),
        "untrained_return": trained.history.curve[0]["return_mean"],
        **returns.summarise(rows, chance, best=best)._asdict(),
        **(predict(agent, settings, cell, root) if agent.has_world_model else {}),
        "curve": [{name: row[name] for name in CURVE if name in row} for row in trained.history.curve],
        "settings": settings.agent_config.flat(),
    }


def random_returns(settings: Settings, cell: Cell, root: Path) -> list[float]:
    """Collect the random episodes once; their returns."""
    if not (root / cell.data).exists():
        with published(root / cell.data) as folder:
            rows = collect(settings, cell, folder, "train", "heldout")
            write_json(folder / "returns.json", {"returns": [row.total for row in rows]})
    totals: list[float] = json.loads((root / cell.data / "returns.json").read_text())["returns"]
    return totals


def predict(agent: Agent, settings: Settings, cell: Cell, root: Path) -> dict[str, float | None]:
    """How long open-loop prediction beats repeating the last observation; states have no SSIM."""
    assert cell.seed is not None
    store = EpisodeStore(root / cell.data / "heldout", read_only=True)
    episodes = [store.episode(index) for index in store.eligible()]
    context, horizon = settings.rollout.context, settings.rollout.horizon
    found = prediction.predict_open_loop(agent, episodes, context=context, horizon=horizon, seed=cell.seed)
    summary = prediction.summarise(found)
    return {name: getattr(summary, name) for name in PREDICTED}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="quick", help="settings to train with")
    parser.add_argument("--tasks", nargs="*", help="default: the preset's")
    parser.add_argument("--variants", nargs="*", help="default: the preset's")
    parser.add_argument("--seeds", nargs="*", type=int, help="default: the preset's")
    parser.add_argument(
        "--work", type=Path, help="keep unfinished runs here and resume them; default: a temporary directory"
    )
    given = parser.parse_args()
    base = load_preset(given.preset)
    for task in given.tasks or base.study.tasks:
        for variant in given.variants or base.study.variants:
            for seed in given.seeds or base.study.seeds:
                settings, cell = resolve(base, variant), Cell("train", task, variant, seed)
                facts = conditions(settings.trainer.threads)
                with tempfile.TemporaryDirectory() as temporary:
                    root = (given.work or Path(temporary)) / settings_hash(settings, cell)
                    with exclusive(root):
                        result = measure(settings, cell, root)
                    shutil.rmtree(root)
                result = {"preset": given.preset, "machine": facts, **result}
                print(json.dumps(result), flush=True)
                if given.json:
                    append_json(given.json, "agents", result)


if __name__ == "__main__":
    main()
