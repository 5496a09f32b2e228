"""What a search maximises: a number for every finished seed and, where it can be had, for every point of its curve."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from ccwm.agents.noise import draw_noise
from ccwm.agents.world_model_learner import WorldModelLearner
from ccwm.ops.truncation import kept_pairs
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.structs import Batch
from ccwm.training.history import Row, summarise_curve
from ccwm.training.module import AgentModule

BATCHES = 20
"""Batches of windows over which the truncation's F1 is taken."""


MEASURES = {
    "auc": "mean height of the learning curve",
    "final": "last return of the learning curve",
    "truncation_f1": "F1 of the truncation",
}
"""Every value of ``tune.measure``, as a person reads it."""


def measure_curve(measure: str, curve: list[Row]) -> float | None:
    """The measure of a learning curve so far; None for one that takes the trained agent."""
    return summarise_curve(curve).get(f"return_{measure}")


def f1_score(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """F1 = 2·hits / (dropped + true) over (dropped, true) masks; 1 where nothing is true and nothing was dropped."""
    hits = dropped = true = 0
    for mask, truth in pairs:
        hits += int((mask & truth).sum())
        dropped += int(mask.sum())
        true += int(truth.sum())
    return 2 * hits / (dropped + true) if dropped + true else 1.0


@torch.no_grad()
def truncation_f1(module: AgentModule, replay: Path) -> float:
    """F1 of the transitions that the mask leaves out against those that the world calls irreversible."""
    learner, seed = module.learner.eval(), module.seed  # in training, `auto` would follow the values that it sees
    config = learner.config
    assert isinstance(learner, WorldModelLearner)
    assert learner.truncation is not None
    sampler = WindowSampler(
        EpisodeStore(replay, read_only=True),
        batch=config.train.batch,
        length=config.train.length,
        seed=seed,
        sampling=config.replay.sampling,
    )
    masks = []
    for index in range(BATCHES):
        batch = Batch(*(part.to(module.device) for part in sampler.draw(index)))
        noise = draw_noise(seed, index, batch, config)
        posterior = learner.world_model.observe(batch, noise.posterior).posterior
        kept = learner.truncation(batch, posterior, learner.world_model, learner.control, module.counters.env_steps)
        inside = ~batch.is_first[1:]
        masks.append((~kept_pairs(kept, batch.is_first) & inside, batch.irreversible[1:] & inside))
    return f1_score(masks)
