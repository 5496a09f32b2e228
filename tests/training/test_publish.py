"""A finished run as files: its last agent and, beside it, its best."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from project import TRAIN

from ccwm.agents.export import load_agent
from ccwm.training.history import History
from ccwm.training.loop import Cost, Trained
from ccwm.training.module import CCWM
from ccwm.training.publish import publish_agent


def test_the_last_and_the_best_agent_are_published(module: CCWM, tmp_path: Path) -> None:
    module.counters.updates, module.counters.env_steps = 4, 120
    best = copy.deepcopy(module.state_dict())
    with torch.no_grad():
        for weight in module.learner.parameters():
            weight += 1
    module.counters.updates, module.counters.env_steps = 8, 200
    trained = Trained(module, History(), Cost(1.0, 1.0, 1.0, 1.0, "cpu"), best)
    publish_agent(tmp_path / "agent", trained, TRAIN)
    agents = [load_agent(tmp_path / "agent"), load_agent(tmp_path / "agent" / "best")]
    assert [(agent.card.updates, agent.card.env_steps) for agent in agents] == [(8, 200), (4, 120)]
    for agent in agents:
        card = agent.card
        assert (card.task, card.variant, card.seed, card.action_size) == (TRAIN.task, TRAIN.variant, 0, 2)
        assert (card.observation_shape, card.observation_dtype) == ((32, 32, 3), "uint8")
    torch.testing.assert_close(agents[0].learner.state_dict(), module.learner.state_dict(), rtol=0, atol=0)
    prefix = "learner."
    learner = {name.removeprefix(prefix): value for name, value in best.items() if name.startswith(prefix)}
    torch.testing.assert_close(agents[1].learner.state_dict(), learner, rtol=0, atol=0)
