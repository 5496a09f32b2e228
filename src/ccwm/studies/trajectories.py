"""Episodes as a trained agent sees them: every step's latent state, the state retraced to it, and its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.agents.world_model import WorldModel
from ccwm.episode import Episode
from ccwm.seeds import episode_seed
from ccwm.structs import Batch
from ccwm.studies.agents import play


class Seen(NamedTuple):
    """One episode of L steps as the agent sees it; nothing is drawn at random, every state is a mean."""

    episode: Episode
    states: Tensor  # [L, F], the features of z̃
    retraced: Tensor | None  # [L − 1, F], those of ž: row t was retraced from z̃_{t+1}; None without retracing
    value: Tensor  # [L], what truncation watches: V, or Q where the settings say so


@torch.no_grad()
def see(agent: Agent, episode: Episode) -> Seen:
    """Observe a whole episode, retrace every transition by one step, and value every state."""
    learner = agent.modelled
    model = learner.world_model
    batch = episode_batch(episode, model)
    steps, stoch = len(episode.reward), model.rssm.stoch
    observed = model.observe(batch, batch.action.new_zeros(steps, 1, stoch))
    posterior = observed.posterior
    states = posterior.feature[:, 0]
    if learner.retracing is None or learner.truncation is None:
        return Seen(episode, states, None, learner.control.value(states))
    mean = batch.action.new_zeros(1, 1, steps - 1, 1, stoch)  # one step back, one sample, no noise
    retraced = learner.retracing.walk(observed, model, mean).feature[0, 0, :, 0]
    value = learner.truncation.signal(posterior, model, learner.control)
    return Seen(episode, states, retraced, value[:, 0])


def exploring_episodes(agent: Agent, *, episodes: int, seed: int, advance: Callable[[], None]) -> list[Episode]:
    """New episodes of the agent with the noise it was trained with; their seeds are the same for every variant."""
    seeds = [episode_seed("states", seed, index) for index in range(episodes)]
    played = []
    for rollout in play(agent, seeds, explore=True):
        played.append(rollout.episode)
        advance()
    return played


def episode_batch(episode: Episode, model: WorldModel) -> Batch:
    """A whole episode as a batch of one row, [L, 1, …], with the dtype and on the device of the model."""
    length = len(episode.reward)
    arrays = {**episode._asdict(), "position": np.arange(length), "episode_length": np.full(length, length)}
    columns = {name: torch.from_numpy(np.ascontiguousarray(of)).unsqueeze(1) for name, of in arrays.items()}
    batch = Batch(**{name: of.to(model.device) for name, of in columns.items()})
    return batch._replace(**{name: getattr(batch, name).to(model.dtype) for name in ("action", "reward", "continues")})
