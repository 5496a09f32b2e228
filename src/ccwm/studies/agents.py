"""A trained agent on its device and in its environment."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path

import torch

from ccwm.agents.export import Agent, load_agent
from ccwm.cells import Cell
from ccwm.envs.change import UNCHANGED, Change
from ccwm.envs.factory import make_env
from ccwm.errors import UserError
from ccwm.settings.agent import Trainer
from ccwm.training.rollouts import Rollout, play_episode


def ready_agent(cell: Cell, trainer: Trainer, root: Path = Path()) -> Agent:
    """Load the agent of a cell; one that was trained for another cell is refused."""
    agent = load_agent(root / cell.model, task=cell.task)
    found = Cell("train", agent.card.task, agent.card.variant, agent.card.seed)
    if found != cell.of("train"):
        hint = f"`dvc repro {cell.of('train')}` makes the right one"
        raise UserError(f"{root / cell.model} holds the agent of {found}", hint=hint)
    return on_device(agent, trainer)


def on_device(agent: Agent, trainer: Trainer) -> Agent:
    """Move an agent to the device that the settings name, with their number of CPU threads."""
    import lightning as L  # here, since the report imports the studies for their readers alone

    torch.set_num_threads(trainer.threads)
    return agent.to(L.Fabric(accelerator=trainer.accelerator, devices=1).device)


def play(
    agent: Agent, seeds: Iterable[int], *, change: Change = UNCHANGED, explore: bool = False
) -> Generator[Rollout]:
    """An episode for each seed in the agent's own environment or a changed one, greedy or exploring as in training."""
    policy = agent.policy(explore=explore)
    with closing(make_env(agent.task, agent.card.config.env, change=change)) as env:
        for seed in seeds:
            yield play_episode(env, policy, seed)


def observation_names(agent: Agent) -> tuple[str, ...]:
    """What the components of the agent's states are called; pixels have no names."""
    with closing(make_env(agent.task, agent.card.config.env)) as env:
        return env.observation_names
