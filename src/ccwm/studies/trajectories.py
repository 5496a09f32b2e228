"""Episodes as a trained agent sees them: every step's latent state, the state retraced to it, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.episode import Episode
from ccwm.seeds import episode_seed
from ccwm.structs import Batch
from ccwm.studies.returns import agent_world, greedy_episode
from ccwm.training.rollouts import play


class Seen(NamedTuple):
    """One episode of L steps as the agent sees it; nothing is drawn, every state is a mean."""

    episode: Episode
    states: Tensor  # [L, F], the features of z̃
    retraced: Tensor | None  # [L − 1, F], those of ž: row t was retraced from z̃_{t+1}; None without retracing
    value: Tensor  # [L], what truncation watches: V, or Q where the settings say so


@torch.no_grad()
def see(agent: Agent, episode: Episode) -> Seen:
    """Observe a whole episode, retrace every transition by one step, and value every state."""
    batch = _batch(episode, like=agent.world_model.rssm.prior_out.weight)
    steps, stoch = len(episode.reward), agent.world_model.rssm.stoch
    posterior = agent.world_model.observe(batch, batch.action.new_zeros(steps, 1, stoch)).posterior
    if agent.retracing is None:
        value = agent.actor_critic.critic(posterior.feature)
        return Seen(episode, posterior.feature[:, 0], None, value[:, 0])
    still = batch.action.new_zeros(1, 1, steps - 1, 1, stoch)  # one step back, one sample, no noise
    retraced = agent.retracing.walk(posterior, agent.world_model, still).feature[0, 0, :, 0]
    value = agent.retracing.signal(posterior, agent.world_model, agent.actor_critic.actor, agent.actor_critic.critic)
    return Seen(episode, posterior.feature[:, 0], retraced, value[:, 0])


def exploring_episodes(agent: Agent, *, episodes: int, seed: int, advance: Callable[[], None]) -> list[Episode]:
    """New episodes of the agent with the noise it was trained with; their seeds are the same for every variant."""
    world = agent_world(agent)
    policy = RecurrentPolicy(
        agent.world_model, agent.actor_critic.actor, exploration=agent.card.actor_critic.exploration
    )
    try:
        played = []
        for index in range(episodes):
            played += play([world], policy, [episode_seed("states", seed, index)])
            advance()
        return [each.episode for each in played]
    finally:
        world.close()


def greedy_trajectory(agent: Agent, *, seed: int) -> Episode:
    """One greedy episode; its start is the same for every variant of ``seed``."""
    world = agent_world(agent)
    try:
        return greedy_episode(agent, world, episode_seed("trajectory", seed)).episode
    finally:
        world.close()


def _batch(episode: Episode, *, like: Tensor) -> Batch:
    """A whole episode as a batch of one row, [L, 1, …], with the dtype and device of ``like``."""

    def column(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(like.device).unsqueeze(1)

    length = len(episode.reward)
    return Batch(
        observation=column(episode.observation).movedim(-1, -3),
        action=column(episode.action).to(like.dtype),
        reward=column(episode.reward).to(like.dtype),
        is_first=column(episode.is_first),
        continues=column(episode.continues).to(like.dtype),
        position=column(np.arange(length)),
        episode_length=column(np.full(length, length)),
        irreversible=column(episode.irreversible),
    )
