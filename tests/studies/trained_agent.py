"""An agent in a small maze, untrained: studies measure, whatever there is to measure."""

from __future__ import annotations

import torch

from ccwm.agents.export import Agent, AgentCard
from ccwm.settings.agent import ActorCritic, Env, Model, Retrace, Truncation
from ccwm.settings.schema import Render


def small_agent(*, task: str = "maze_open", time_limit: int = 60) -> Agent:
    torch.manual_seed(0)
    return Agent(
        AgentCard(
            task=task,
            variant="ccwm",
            seed=0,
            actions=2,
            env_steps=0,
            updates=0,
            env=Env(size=32, action_repeat=2, time_limit=time_limit),
            render=Render(),
            model=Model(depth=2, deter=8, stoch=4, hidden=8, reward_units=8),
            retrace=Retrace(reverse_units=8),
            truncation=Truncation(),
            actor_critic=ActorCritic(units=8),
        )
    ).eval()
