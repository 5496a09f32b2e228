"""Does imagination promise more reward than the data hold?

    python benchmarks/imagination.py [--json benchmarks/imagination.json]

Trains an untrained agent of a preset on random episodes alone, once for each kind of initial weights, and prints the
imagined reward a step after every hundred updates, beside the reward a step of the episodes. An actor that climbs
imagined rewards which no data support learns nothing, however long it trains.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from common import collect, conditions, make_parser, make_updater
from rich.progress import track

from ccwm.agents.model_based import ModelBasedLearner
from ccwm.cells import Cell
from ccwm.files import write_json
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.settings.agent import AgentConfig
from ccwm.settings.presets import load_preset
from ccwm.settings.variants import resolve
from ccwm.training.update import JointUpdater

WEIGHTS = ("glorot", "torch", "glorot, torch in the RSSM")
EVERY = 100
TERMS = ("model/reward", "model/nats", "critic/reward", "critic/value")


def untrained(config: AgentConfig, weights: str, store: EpisodeStore) -> JointUpdater:
    """An agent with one of WEIGHTS."""
    model = config.model.model_copy(update={"init": weights.partition(",")[0]})
    episode = store.episode(0)
    updater = make_updater(
        config.model_copy(update={"model": model}),
        observation_shape=episode.observation.shape[1:],
        actions=episode.action.shape[1],
    )
    learner = updater.module.learner
    assert isinstance(learner, ModelBasedLearner)
    if "in the RSSM" in weights:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            for layer in learner.world_model.rssm.children():
                if isinstance(layer, torch.nn.Linear | torch.nn.GRUCell):
                    layer.reset_parameters()
    return updater


def measure(config: AgentConfig, weights: str, store: EpisodeStore, *, updates: int) -> list[dict[str, Any]]:
    """A row for every EVERY updates, and for the last: means of TERMS since the row before."""
    updater = untrained(config, weights, store)
    settings = config.train
    sampler = WindowSampler(
        store, batch=settings.batch, length=settings.length, seed=0, sampling=config.replay.sampling
    )
    rows = []
    for number in track(range(1, updates + 1), description=weights):
        updater.step(sampler.draw(number))
        if number % EVERY == 0 or number == updates:
            means = updater.averages()
            rows.append({"weights": weights, "updates": number, **{name: round(means[name], 3) for name in TERMS}})
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="quick", help="settings to train with, and the task, its first")
    parser.add_argument("--variant", default="ccwm", help="one of the preset's")
    parser.add_argument("--updates", type=int, default=200)
    given = parser.parse_args()
    settings = resolve(load_preset(given.preset), given.variant)
    facts = conditions(settings.trainer.threads)
    cell = Cell("train", settings.study.tasks[0], given.variant, 0)
    with tempfile.TemporaryDirectory() as folder:
        played = collect(settings, cell, Path(folder), "train")
        store = EpisodeStore(Path(folder) / "train", read_only=True)
        reward = round(sum(row.total for row in played) / store.steps, 4)
        print(f"{cell.task}: the random episodes hold {reward} of reward a step")
        config, updates = settings.agent_config, given.updates
        rows = [row for weights in WEIGHTS for row in measure(config, weights, store, updates=updates)]
    if given.json:
        about = {"machine": facts, "preset": given.preset, "variant": given.variant, "task": cell.task}
        write_json(given.json, {**about, "reward_of_the_data": reward, "rows": rows})


if __name__ == "__main__":
    main()
