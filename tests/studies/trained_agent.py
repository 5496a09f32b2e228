"""An agent in a small maze, untrained: studies measure, whatever there is to measure."""

from __future__ import annotations

import numpy as np
import torch

from ccwm.agents.export import Agent, AgentCard
from ccwm.agents.policy import RandomPolicy
from ccwm.envs.factory import make_env
from ccwm.episode import Episode
from ccwm.settings.agent import (
    ActorCritic,
    AgentConfig,
    Env,
    Model,
    Optimiser,
    Replay,
    Retrace,
    Train,
    Trainer,
    Truncation,
)
from ccwm.studies.components import Components
from ccwm.training.rollouts import play_episode

NO_COMPONENTS = Components(*(np.empty(0) for _ in Components._fields))
"""Those of pixels."""


def small_agent(
    *,
    task: str = "maze_open",
    time_limit: int = 60,
    retrace_weight: float = 1.0,
    observation: str = "pixels",
    **truncation: object,
) -> Agent:
    """From pixels of 32 × 32, or from symlog states: the place in the maze, [2]."""
    torch.manual_seed(0)
    config = AgentConfig(
        env=Env(observation=observation, size=32, action_repeat=2, time_limit=time_limit),
        model=Model(depth=2, deter=8, stoch=4, hidden=8, reward_units=8, vector_units=8, symlog=True),
        retrace=Retrace(weight=retrace_weight, reverse_units=8),
        truncation=Truncation(**truncation),
        actor_critic=ActorCritic(units=8),
        optimiser=Optimiser(),
        replay=Replay(),
        train=Train(),
        trainer=Trainer(),
    )
    card = AgentCard(
        task=task,
        variant="ccwm",
        seed=0,
        observation_shape=(32, 32, 3) if observation == "pixels" else (2,),
        observation_dtype="uint8" if observation == "pixels" else "float32",
        action_size=2,
        env_steps=0,
        updates=0,
        config=config,
    )
    return Agent(card).eval()


def random_episode(agent: Agent, seed: int) -> Episode:
    """31 steps of the random policy in the agent's environment."""
    return play_episode(make_env(agent.card.task, agent.card.config.env), RandomPolicy(2), seed).episode


def labelled(steps: int, event: int) -> Episode:
    """An episode of which only the labels matter."""
    return Episode(*(np.zeros(steps) for _ in range(5)), irreversible=np.arange(steps) == event)
