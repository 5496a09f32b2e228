"""Does an agent learn? Collect, train, evaluate and predict with a preset, for each task, variant and seed.

    python benchmarks/learning.py --preset quick --seeds 0 1 2 --json benchmarks/learning.json
    python benchmarks/learning.py --preset cheetah --variants ccwm --work .work/learning --json benchmarks/cheetah.json

Prints a line for each agent and adds it to the JSON file: what it was trained with, the learning curve, the machine and
the time it took. With ``--work``, a run that was ended goes on where it was, as the train stage does.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from ccwm.agents.export import Agent
from ccwm.cells import settings_hash
from ccwm.files import write_json
from ccwm.machine import conditions
from ccwm.replay.store import EpisodeStore
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.studies import prediction, returns
from ccwm.studies.agents import ready_agent
from ccwm.training.collect import collect_random
from ccwm.training.loop import Learning, train
from ccwm.training.publish import publish_agent
from ccwm.training.work_directory import exclusive

CURVE = ("env_steps", "updates", "return_mean", "success_rate")
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


def measure(settings: Settings, *, task: str, variant: str, seed: int, folder: Path) -> dict[str, Any]:
    """Everything that the pipeline does to one agent, without the pipeline."""
    learning = Learning(*(getattr(settings, section) for section in Learning._fields))
    chance = random_returns(settings, task=task, seed=seed, folder=folder)
    spent, began = folder / "seconds.json", time.monotonic()
    before = json.loads(spent.read_text())["seconds"] if spent.exists() else 0.0
    log = lambda *_: write_json(spent, {"seconds": before + time.monotonic() - began})  # noqa: E731
    label = f"{task} {variant} seed {seed}"
    trained = train(learning, task=task, seed=seed, data=folder / "train", work=folder / "work", log=log, label=label)
    seconds = before + time.monotonic() - began
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
        **returns.summarise(rows, chance, best=best),
        **predict(agent, settings, folder, seed),
        "curve": [{name: row[name] for name in CURVE if name in row} for row in trained.history.curve],
        "settings": learning.flat(),
    }


def random_returns(settings: Settings, *, task: str, seed: int, folder: Path) -> list[float]:
    """Collect the first data once; the returns of the random policy."""
    done = folder / "random.json"
    if not done.exists():
        parts = {"train": settings.collect.episodes, "heldout": settings.collect.heldout}
        for part in parts:
            shutil.rmtree(folder / part, ignore_errors=True)
        rows = collect_random(
            task, folder, parts=parts, env=settings.env, render=settings.render, seed=seed, advance=lambda: None
        )
        write_json(done, {"returns": [row.total for row in rows]})
    totals: list[float] = json.loads(done.read_text())["returns"]
    return totals


def predict(agent: Agent, settings: Settings, folder: Path, seed: int) -> dict[str, float]:
    """How long open-loop prediction beats repeating the last frame."""
    store = EpisodeStore(folder / "heldout", read_only=True)
    episodes = [store.episode(index) for index in store.eligible()]
    context, horizon = settings.rollout.context, settings.rollout.horizon
    found = prediction.predict_open_loop(agent, episodes, context=context, horizon=horizon, seed=seed)
    summary = prediction.summarise(found, context=context)
    return {name: summary[name] for name in PREDICTED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="quick", help="settings to train with")
    parser.add_argument("--tasks", nargs="*", help="default: the preset's")
    parser.add_argument("--variants", nargs="*", help="default: the preset's")
    parser.add_argument("--seeds", nargs="*", type=int, help="default: the preset's")
    parser.add_argument("--json", type=Path, help="add the measurements to this file")
    parser.add_argument(
        "--work", type=Path, help="keep unfinished runs here and go on with them; default: a temporary one"
    )
    given = parser.parse_args()
    base = load_preset(given.preset)
    for task in given.tasks or base.study.tasks:
        for variant in given.variants or base.study.variants:
            for seed in given.seeds or base.study.seeds:
                settings = resolve(base, variant)
                key = settings_hash(settings, "train", task=task, variant=variant, seed=seed)
                with tempfile.TemporaryDirectory() as temporary:
                    folder = (given.work or Path(temporary)) / key
                    with exclusive(folder):
                        result = measure(settings, task=task, variant=variant, seed=seed, folder=folder)
                    shutil.rmtree(folder)
                result = {"preset": given.preset, "machine": conditions(1), **result}
                print(json.dumps(result), flush=True)
                if given.json:
                    known = json.loads(given.json.read_text())["agents"] if given.json.exists() else []
                    write_json(given.json, {"agents": [*known, result]})


if __name__ == "__main__":
    main()
