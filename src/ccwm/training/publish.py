"""A finished training run as files."""

from __future__ import annotations

import copy
from pathlib import Path

from ccwm.agents.export import AgentCard, save_agent
from ccwm.cells import Cell
from ccwm.files import published
from ccwm.training.loop import Trained
from ccwm.training.module import AgentModule


def publish_agent(directory: Path, trained: Trained, cell: Cell) -> None:
    """Export the agent with its last weights, and in ``best`` those of its best evaluation."""
    best = copy.deepcopy(trained.module)
    best.load_state_dict(trained.best)
    with published(directory) as folder:
        (folder / "best").mkdir()
        for module, place in ((trained.module, folder), (best, folder / "best")):
            save_agent(place, module.learner, make_card(module, cell))


def make_card(module: AgentModule, cell: Cell) -> AgentCard:
    """The card of an agent as it is now."""
    learner, counters = module.learner, module.counters
    assert cell.seed is not None
    return AgentCard(
        task=cell.task,
        variant=cell.variant,
        seed=cell.seed,
        observation_shape=learner.observation_shape,
        observation_dtype="uint8" if len(learner.observation_shape) == 3 else "float32",
        action_size=learner.actions,
        env_steps=counters.env_steps,
        updates=counters.updates,
        config=learner.config,
    )
