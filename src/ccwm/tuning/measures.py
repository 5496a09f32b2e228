"""What a search maximises: a number for every finished seed and, where it can be had, for every point of its curve."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ccwm.ops.truncation import kept_pairs
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.structs import Batch
from ccwm.training.history import History, Row
from ccwm.training.loop import AgentConfig
from ccwm.training.module import CCWM, Counters
from ccwm.training.publish import summarise

BATCHES = 20
"""Batches of windows over which the truncation's F1 is taken."""


class Finished(NamedTuple):
    """A seed whose training is over, its replay memory still there."""

    module: CCWM
    learning: AgentConfig
    replay: Path
    seed: int


class Measure(NamedTuple):
    """A number to be maximised, from the learning curve so far or from the finished agent."""

    title: str
    of_curve: Callable[[list[Row]], float] | None = None
    of_agent: Callable[[Finished], float] | None = None


def curve_height(curve: list[Row]) -> float:
    """Area under the learning curve divided by its width: a mean return."""
    return summarise(History(curve=curve), Counters())["return_auc"]


def last_return(curve: list[Row]) -> float:
    """The learning curve's last mean return."""
    return summarise(History(curve=curve), Counters())["return_final"]


def f1_score(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """F1 = 2·hits / (dropped + true) over (dropped, true) masks; 1 where nothing is true and nothing was dropped."""
    hits = dropped = true = 0
    for mask, truth in pairs:
        hits += int((mask & truth).sum())
        dropped += int(mask.sum())
        true += int(truth.sum())
    return 2 * hits / (dropped + true) if dropped + true else 1.0


@torch.no_grad()
def truncation_f1(finished: Finished) -> float:
    """F1 of the transitions that the mask leaves out against those that the world calls irreversible."""
    module, learning = finished.module, finished.learning
    learner = module.learner
    assert learner.retracing is not None
    store = EpisodeStore(finished.replay, read_only=True)
    train = learning.train
    sampler = WindowSampler(
        store, batch=train.batch, length=train.length, seed=finished.seed, sampling=learning.replay.sampling
    )
    device = next(learner.parameters()).device
    masks = []
    for index in range(BATCHES):
        batch = Batch(*(part.to(device) for part in sampler.draw(index)))
        noise = learner.noise(finished.seed, index, batch)
        posterior = learner.world_model.observe(batch, noise.posterior).posterior
        actor_critic = learner.actor_critic
        kept = learner.retracing.kept(
            batch, posterior, learner.world_model, actor_critic.actor, actor_critic.critic, module.counters.env_steps
        )
        inside = ~batch.is_first[1:]
        masks.append((~kept_pairs(kept, batch.is_first) & inside, batch.irreversible[1:] & inside))
    return f1_score(masks)


MEASURES = {
    "auc": Measure("mean height of the learning curve", of_curve=curve_height),
    "final": Measure("last return of the learning curve", of_curve=last_return),
    "truncation_f1": Measure("F1 of the truncation", of_agent=truncation_f1),
}
"""Every value of ``tune.measure``."""
