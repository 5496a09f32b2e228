"""Do dreams promise more than was ever seen?  python benchmarks/dreams.py [--json benchmarks/dreams.json]

Trains a preset's fresh agent on random episodes alone, once for each kind of first weights, and prints the reward a
step that its dreams promise after every hundred updates, beside what the episodes hold. An actor that climbs promises
which no data support learns nothing, however long it trains.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from update import update

from ccwm.files import write_json
from ccwm.machine import conditions
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.training.collect import collect_random
from ccwm.training.loop import build_module
from ccwm.training.memory import keep_freed_memory
from ccwm.training.module import CCWM

WEIGHTS = ("glorot", "torch", "glorot, torch in the RSSM")
EVERY = 100
TERMS = ("model/reward", "model/nats", "critic/reward", "critic/value")


def fresh_agent(settings: Settings, weights: str, *, actions: int) -> CCWM:
    """An agent with one of WEIGHTS."""
    model = settings.model.model_copy(update={"init": weights.partition(",")[0]})
    sections = (getattr(settings, section) for section in Learning._fields)
    learning = Learning(*sections)._replace(model=model)
    module = build_module(learning, seed=0, actions=actions)
    if "in the RSSM" in weights:
        for layer in module.learner.world_model.rssm.children():
            if isinstance(layer, torch.nn.Linear | torch.nn.GRUCell):
                layer.reset_parameters()
    return module


def measure(settings: Settings, weights: str, store: EpisodeStore, *, updates: int) -> list[dict[str, Any]]:
    """A row for every EVERY updates: means of TERMS since the row before."""
    module = fresh_agent(settings, weights, actions=store.episode(0).action.shape[1])
    sampler = WindowSampler(store, batch=settings.train.batch, length=settings.train.length, seed=0)
    rows, seen = [], []
    for number in track(range(1, updates + 1), description=weights):
        batch = sampler.draw(number)
        losses = update(module, batch, module.learner.noise(0, number, batch))
        seen.append({name: float(losses.terms[name]) for name in TERMS})
        if number % EVERY == 0:
            means = {name: round(statistics.fmean(terms[name] for terms in seen), 3) for name in TERMS}
            rows.append({"weights": weights, "updates": number, **means})
            print(rows[-1], flush=True)
            seen = []
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cheetah", help="settings to train with, and the task, its first")
    parser.add_argument("--variant", default="ccwm", help="one of the preset's")
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    given = parser.parse_args()
    settings = resolve(load_preset(given.preset), given.variant)
    torch.set_num_threads(settings.trainer.threads)
    keep_freed_memory()
    task = settings.study.tasks[0]
    with tempfile.TemporaryDirectory() as folder:
        parts = {"train": settings.collect.episodes}
        env, render = settings.env, settings.render
        played = collect_random(task, Path(folder), parts=parts, env=env, render=render, seed=0, advance=lambda: None)
        store = EpisodeStore(Path(folder) / "train", read_only=True)
        steps = sum(len(store.episode(index).reward) for index in store.eligible())
        held = round(sum(row.total for row in played) / steps, 4)
        print(f"{task}: the random episodes hold {held} of reward a step")
        rows = [row for weights in WEIGHTS for row in measure(settings, weights, store, updates=given.updates)]
    if given.json:
        facts = {"machine": conditions(1), "preset": given.preset, "variant": given.variant, "task": task}
        write_json(given.json, {**facts, "reward_of_the_data": held, "rows": rows})


if __name__ == "__main__":
    main()
