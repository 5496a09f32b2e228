"""Does an agent learn? Collect, train, evaluate and predict with a preset, for each task, variant and seed.

    python benchmarks/learning.py --preset quick --tasks maze_four_rooms --seeds 0 1 2 --json benchmarks/learning.json

Prints a line for each agent and adds it to the JSON file, with the settings' hash, the machine and the time it took.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from ccwm.agent.export import Agent
from ccwm.config import Settings
from ccwm.data.store import EpisodeStore
from ccwm.files import write_json
from ccwm.params import resolve, settings_hash
from ccwm.presets import load_preset
from ccwm.studies import prediction, returns
from ccwm.studies.agents import ready_agent
from ccwm.training.collecting import collect_random
from ccwm.training.publish import publish_agent
from ccwm.training.run import Learning, train


def measure(settings: Settings, *, task: str, variant: str, seed: int, folder: Path) -> dict[str, Any]:
    """Everything that the pipeline does to one agent, without the pipeline."""
    learning = Learning(*(getattr(settings, section) for section in Learning._fields))
    parts = {"train": settings.collect.episodes, "heldout": settings.collect.heldout}
    chance = collect_random(
        task, folder, parts=parts, env=settings.env, render=settings.render, seed=seed, advance=lambda: None
    )
    began = time.monotonic()
    label = f"{task} {variant} seed {seed}"
    trained = train(
        learning, task=task, seed=seed, data=folder / "train", work=folder / "work", log=lambda *_: None, label=label
    )
    seconds = time.monotonic() - began
    publish_agent(folder / "agent", trained, learning, task=task, variant=variant, seed=seed)
    agent = ready_agent(folder / "agent", settings.trainer)
    rows = returns.greedy_returns(agent, episodes=settings.evaluate.episodes, seed=seed, advance=lambda: None)
    best = returns.best_possible(task, settings.env.time_limit)
    return {
        "task": task,
        "variant": variant,
        "seed": seed,
        "settings_hash": settings_hash(settings, "train", task=task, variant=variant, seed=seed),
        "env_steps": trained.module.counters.env_steps,
        "updates": trained.module.counters.updates,
        "seconds": round(seconds, 1),
        "untrained_return": trained.history.curve[0]["return_mean"],
        **returns.summarise(rows, [row.total for row in chance], best=best),
        **predict(agent, settings, folder, seed),
    }


def predict(agent: Agent, settings: Settings, folder: Path, seed: int) -> dict[str, float]:
    """How long open-loop prediction beats repeating the last frame."""
    store = EpisodeStore(folder / "heldout", read_only=True)
    episodes = [store.episode(index) for index in store.eligible()]
    context, horizon = settings.rollout.context, settings.rollout.horizon
    found = prediction.predict_open_loop(agent, episodes, context=context, horizon=horizon, seed=seed)
    summary = prediction.summarise(found, context=context)
    return {name: summary[name] for name in ("useful_steps_median", "error_mean", "baseline_error_mean")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="quick", help="settings to train with")
    parser.add_argument("--tasks", nargs="*", help="default: the preset's")
    parser.add_argument("--variants", nargs="*", help="default: the preset's")
    parser.add_argument("--seeds", nargs="*", type=int, help="default: the preset's")
    parser.add_argument("--json", type=Path, help="add the measurements to this file")
    given = parser.parse_args()
    base = load_preset(given.preset)
    for task in given.tasks or base.study.tasks:
        for variant in given.variants or base.study.variants:
            for seed in given.seeds or base.study.seeds:
                with tempfile.TemporaryDirectory() as folder:
                    settings = resolve(base, variant)
                    result = measure(settings, task=task, variant=variant, seed=seed, folder=Path(folder))
                result = {"preset": given.preset, "machine": machine(), **result}
                print(json.dumps(result), flush=True)
                if given.json:
                    known = json.loads(given.json.read_text())["agents"] if given.json.exists() else []
                    write_json(given.json, {"agents": [*known, result]})


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
