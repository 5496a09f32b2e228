"""Episodes as a trained agent sees them: every step's latent state, the state retraced to it, and its value."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.agents.world_model import WorldModel
from ccwm.episode import Episode
from ccwm.seeds import episode_seed
from ccwm.structs import Batch
from ccwm.studies.agents import agent_env, greedy_episode
from ccwm.training.rollouts import play_episode


class Seen(NamedTuple):
    """One episode of L steps as the agent sees it; nothing is drawn at random, every state is a mean."""

    episode: Episode
    states: Tensor  # [L, F], the features of z̃
    retraced: Tensor | None  # [L − 1, F], those of ž: row t was retraced from z̃_{t+1}; None without retracing
    value: Tensor  # [L], what truncation watches: V, or Q where the settings say so


@torch.no_grad()
def see(agent: Agent, episode: Episode) -> Seen:
    """Observe a whole episode, retrace every transition by one step, and value every state."""
    model = agent.world_model
    batch = episode_batch(episode, model)
    steps, stoch = len(episode.reward), model.rssm.stoch
    posterior = model.observe(batch, batch.action.new_zeros(steps, 1, stoch)).posterior
    states = posterior.feature[:, 0]
    if agent.retracing is None or agent.truncation is None:
        return Seen(episode, states, None, agent.actor_critic.critic(states))
    mean = batch.action.new_zeros(1, 1, steps - 1, 1, stoch)  # one step back, one sample, no noise
    retraced = agent.retracing.walk(posterior, model, mean).feature[0, 0, :, 0]
    value = agent.truncation.signal(posterior, model, agent.actor_critic)
    return Seen(episode, states, retraced, value[:, 0])


def exploring_episodes(agent: Agent, *, episodes: int, seed: int, advance: Callable[[], None]) -> list[Episode]:
    """New episodes of the agent with the noise it was trained with; their seeds are the same for every variant."""
    exploration = agent.card.config.actor_critic.exploration
    policy = RecurrentPolicy(agent.world_model, agent.actor_critic.actor, exploration=exploration)
    played = []
    with closing(agent_env(agent)) as env:
        for index in range(episodes):
            played.append(play_episode(env, policy, episode_seed("states", seed, index)).episode)
            advance()
    return played


def greedy_trajectory(agent: Agent, *, seed: int) -> Episode:
    """One greedy episode; its start is the same for every variant of ``seed``."""
    with closing(agent_env(agent)) as env:
        return greedy_episode(agent, env, episode_seed("trajectory", seed)).episode


def episode_batch(episode: Episode, model: WorldModel) -> Batch:
    """A whole episode as a batch of one row, [L, 1, …], with the dtype and on the device of the model."""

    def column(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(model.device).unsqueeze(1)

    length = len(episode.reward)
    return Batch(
        observation=column(episode.observation),
        action=column(episode.action).to(model.dtype),
        reward=column(episode.reward).to(model.dtype),
        is_first=column(episode.is_first),
        continues=column(episode.continues).to(model.dtype),
        position=column(np.arange(length)),
        episode_length=column(np.full(length, length)),
        irreversible=column(episode.irreversible),
    )
