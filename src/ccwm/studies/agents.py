"""A trained agent on its device and in its environment."""

from __future__ import annotations

from pathlib import Path

import torch

from ccwm.agents.export import Agent, load_agent
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.envs.change import UNCHANGED, Change
from ccwm.envs.env import TaskEnv
from ccwm.envs.factory import make_env
from ccwm.settings.agent import Trainer
from ccwm.training.rollouts import Rollout, play_episode


def ready_agent(directory: Path, trainer: Trainer) -> Agent:
    """Load an agent onto the device that the settings name, with their number of CPU threads."""
    import lightning as L  # here, since the report imports the studies for their readers alone

    torch.set_num_threads(trainer.threads)
    agent = load_agent(directory)
    device = L.Fabric(accelerator=trainer.accelerator, devices=1).device
    return agent.to(device)


def agent_env(agent: Agent, change: Change = UNCHANGED, *, task: str | None = None) -> TaskEnv:
    """The environment that the agent was trained in, a changed one, or another task's, observed alike."""
    return make_env(task or agent.card.task, agent.card.config.env, change=change)


def greedy_episode(agent: Agent, env: TaskEnv, seed: int) -> Rollout:
    """One greedy episode, a function of the agent, the environment and the seed."""
    return play_episode(env, RecurrentPolicy(agent.world_model, agent.actor_critic.actor), seed)
