"""A trained agent as files: safetensors and JSON, nothing executable."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ccwm.agent.learner import Learner
from ccwm.agent.recurrent import RecurrentPolicy
from ccwm.config import Behaviour, Env, Model, Render, Retrace, Section, Truncation

FORMAT = 1


class AgentCard(Section):
    """What must be known of an agent to rebuild it and to put it into its world."""

    format: int = FORMAT
    task: str
    variant: str
    seed: int
    actions: int
    env_steps: int
    updates: int
    env: Env
    render: Render
    model: Model
    retrace: Retrace
    truncation: Truncation
    behaviour: Behaviour


class Agent(Learner):
    """A trained agent: the learner's parts, its card, and greedy acting by ``reset`` and ``act``."""

    def __init__(self, card: AgentCard) -> None:
        super().__init__(
            model=card.model,
            retrace=card.retrace,
            truncation=card.truncation,
            behaviour=card.behaviour,
            size=card.env.size,
            actions=card.actions,
        )
        self.card = card
        self.policy = RecurrentPolicy(self.world_model, self.behaviour.actor)
        self.rows = 0

    def reset(self, batch: int = 1) -> None:
        """Begin an episode in each of ``batch`` environments."""
        self.policy.reset([0] * batch)
        self.rows = batch

    def act(self, image: np.ndarray) -> np.ndarray:
        """The greedy action: uint8 [B, size, size, 3] → float32 [B, A] in [−1, 1]."""
        size = self.card.env.size
        wanted = (self.rows, size, size, 3)
        if self.rows == 0:
            raise ValueError("call reset(batch) before the first act(image) of an episode")
        if image.dtype != np.uint8 or image.shape != wanted:
            raise ValueError(f"this agent sees uint8 images of shape {wanted}, got {image.dtype} {image.shape}")
        return self.policy.act(image)


def save_agent(directory: Path, learner: Learner, card: AgentCard) -> None:
    """Write ``agent.safetensors`` and ``agent.json`` into an existing directory."""
    weights = {name: value.detach().cpu().contiguous() for name, value in learner.state_dict().items()}
    save_file(weights, directory / "agent.safetensors")
    (directory / "agent.json").write_text(json.dumps(card.model_dump(), indent=2) + "\n")


def load_agent(directory: str | Path) -> Agent:
    """Read an exported agent; nothing in it is executed."""
    folder = Path(directory)
    for name in ("agent.json", "agent.safetensors"):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} holds no exported agent: {name} is missing")
    try:
        card = AgentCard.model_validate_json((folder / "agent.json").read_text())
    except ValidationError as error:
        raise ValueError(f"{folder / 'agent.json'} is not an agent of this version of ccwm: {error}") from error
    if card.format != FORMAT:
        raise ValueError(f"{folder} has agent format {card.format}, this version of ccwm reads {FORMAT}")
    agent = Agent(card)
    weights = folder / "agent.safetensors"
    try:
        agent.load_state_dict(load_file(weights))
    except SafetensorError as error:
        raise ValueError(f"{weights} is damaged ({error}): export the agent again") from error
    except RuntimeError as error:  # torch's word for names and shapes that differ
        raise ValueError(f"{weights} does not fit its agent.json: export both again. {error}") from error
    return agent.eval()
