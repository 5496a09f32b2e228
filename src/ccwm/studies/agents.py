"""A trained agent on its device and in its environment."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path

import torch

from ccwm.agents.export import Agent, load_agent
from ccwm.envs.change import UNCHANGED, Change
from ccwm.envs.factory import make_env
from ccwm.settings.agent import Trainer
from ccwm.training.rollouts import Rollout, play_episode


def ready_agent(directory: Path, trainer: Trainer) -> Agent:
    """Load an agent onto the device that the settings name, with their number of CPU threads."""
    import lightning as L  # here, since the report imports the studies for their readers alone

    torch.set_num_threads(trainer.threads)
    return load_agent(directory).to(L.Fabric(accelerator=trainer.accelerator, devices=1).device)


def play(
    agent: Agent, seeds: Iterable[int], *, change: Change = UNCHANGED, exploration: float | None = None
) -> Generator[Rollout]:
    """An episode for each seed in the agent's own environment or a changed one, greedy or with exploration noise."""
    policy = agent.policy(exploration=exploration)
    with closing(make_env(agent.card.task, agent.card.config.env, change=change)) as env:
        for seed in seeds:
            yield play_episode(env, policy, seed)


def observation_names(agent: Agent) -> tuple[str, ...]:
    """What the components of the agent's states are called; pixels have no names."""
    with closing(make_env(agent.card.task, agent.card.config.env)) as env:
        return env.observation_names
