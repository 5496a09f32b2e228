"""A trained agent as files: safetensors and JSON, nothing executable."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ccwm.agents.learner import Learner
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.errors import UserError
from ccwm.settings.agent import ActorCritic, Env, Model, Retrace, Truncation
from ccwm.settings.schema import Render
from ccwm.settings.section import Section

FORMAT = 1


class BadAgent(UserError, ValueError):
    """Files or a name that no agent can be made of."""


class WrongImage(UserError, ValueError):
    """What an agent was shown is not what it was trained to see."""


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
    actor_critic: ActorCritic


class Agent(Learner):
    """A trained agent: the learner's parts, its card, and greedy acting by ``reset`` and ``act``."""

    def __init__(self, card: AgentCard) -> None:
        super().__init__(
            model=card.model,
            retrace=card.retrace,
            truncation=card.truncation,
            actor_critic=card.actor_critic,
            size=card.env.size,
            actions=card.actions,
        )
        self.card = card
        self.policy = RecurrentPolicy(self.world_model, self.actor_critic.actor)
        self.rows = 0

    def reset(self, batch: int = 1) -> None:
        """Begin an episode in each of ``batch`` environments."""
        self.policy.reset([0] * batch)
        self.rows = batch

    def act(self, image: np.ndarray) -> np.ndarray:
        """The greedy action: uint8 [B, size, size, 3] → float32 [B, A] in [−1, 1]; a single world may leave B out."""
        single = self.rows == 1 and np.ndim(image) == 3
        batch = image[None] if single else image
        if self.rows == 0:
            raise WrongImage("call reset(batch) before the first act(image) of an episode")
        self._refuse_wrong(batch)
        action = self.policy.act(batch)
        return action[0] if single else action

    def _refuse_wrong(self, image: np.ndarray) -> None:
        """Refuse all but uint8 [B, size, size, 3], and say what to do about it."""
        size = self.card.env.size
        wanted = (self.rows, size, size, 3)
        array = isinstance(image, np.ndarray)
        if array and image.dtype == np.uint8 and image.shape == wanted:
            return
        got, cure = type(image).__name__, "pass a NumPy array"
        if array:
            got, cure = f"{image.dtype} {image.shape}", "reset(batch) says how many images come at once"
            if image.dtype != np.uint8:
                cure = "give pixels from 0 to 255 as numpy.uint8"
                bad = 0 if image.dtype.kind not in "fc" else int((~np.isfinite(image)).sum())
                cure = f"{bad} of its values are NaN or infinite; {cure}" if bad else cure
            elif image.shape[-3:] == (3, size, size):
                cure = "put the channels last"
            elif image.shape[-3:] != wanted[1:]:
                cure = f"scale the picture to {size} × {size} RGB"
        raise WrongImage(f"this agent sees uint8 images of shape {wanted}, got {got}: {cure}")


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
        raise BadAgent(f"{folder / 'agent.json'} is not an agent of this version of ccwm: {error}") from error
    if card.format != FORMAT:
        raise BadAgent(f"{folder} has agent format {card.format}, this version of ccwm reads {FORMAT}")
    agent = Agent(card)
    weights = folder / "agent.safetensors"
    try:
        agent.load_state_dict(load_file(weights))
    except SafetensorError as error:
        raise BadAgent(f"{weights} is damaged ({error}): export the agent again") from error
    except RuntimeError as error:  # torch's word for names and shapes that differ
        raise BadAgent(f"{weights} does not fit its agent.json: export both again. {error}") from error
    return agent.eval()
