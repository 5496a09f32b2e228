"""A trained agent as files: safetensors and JSON, nothing executable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ccwm.agents.learner import Learner
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.errors import UserError
from ccwm.settings.agent import AgentConfig
from ccwm.settings.section import Section

FORMAT = 2
CARD, WEIGHTS = "agent.json", "agent.safetensors"


class BadAgent(UserError, ValueError):
    """Files or a name that no agent can be made of."""


class AgentCard(Section):
    """What must be known of an agent to rebuild it and to put it into its environment."""

    format: int = FORMAT
    task: str
    variant: str
    seed: int
    observation_shape: tuple[int, ...]
    observation_dtype: Literal["uint8", "float32"]
    action_size: int
    env_steps: int
    updates: int
    config: AgentConfig


class Agent(Learner):
    """A trained agent: the learner's parts, its card, and greedy acting by ``reset`` and ``act``."""

    def __init__(self, card: AgentCard) -> None:
        super().__init__(card.config, observation_shape=card.observation_shape, actions=card.action_size)
        self.card = card
        self.policies: list[RecurrentPolicy] = []

    def policy(self, *, exploration: float | None = None) -> RecurrentPolicy:
        """The agent's policy for one environment: greedy, or with exploration noise."""
        return RecurrentPolicy(self.world_model, self.actor_critic.actor, exploration=exploration)

    def reset(self, batch: int = 1) -> None:
        """Start an episode in each of ``batch`` environments."""
        self.policies = [self.policy() for _ in range(batch)]

    def act(self, observation: np.ndarray) -> np.ndarray:
        """The greedy action: [B, *observation] → float32 [B, A] in [−1, 1]; a single environment may leave B out."""
        shape = self.card.observation_shape
        single = len(self.policies) == 1 and np.ndim(observation) == len(shape)
        if not self.policies:
            raise UserError("reset() has not been called", hint="call reset(batch) before the first act")
        batch = observation[None] if single else observation
        self._check(batch)
        actions = np.stack([policy.act(row) for policy, row in zip(self.policies, batch, strict=True)])
        return actions[0] if single else actions

    def _check(self, observation: np.ndarray) -> None:
        """Refuse all but [B, *observation] of the right dtype, and say what to do about it."""
        dtype, wanted = self.card.observation_dtype, (len(self.policies), *self.card.observation_shape)
        if isinstance(observation, np.ndarray) and observation.dtype == dtype and observation.shape == wanted:
            return
        got, hint = type(observation).__name__, "pass a NumPy array"
        if isinstance(observation, np.ndarray):
            got, hint = f"{observation.dtype} {observation.shape}", "reset(batch) says how many come at once"
            if observation.dtype != dtype:
                hint = f"convert it to numpy.{dtype}; pixels are bytes from 0 to 255"
                bad = 0 if observation.dtype.kind not in "fc" else int((~np.isfinite(observation)).sum())
                hint = f"{bad} of its values are NaN or infinite; {hint}" if bad else hint
            elif observation.shape[1:] != wanted[1:]:
                hint = "make the environment with agent.card.config.env; pixels have their channels last"
        raise UserError(f"this agent takes observations of {dtype} {wanted}, got {got}", hint=hint)


def save_agent(directory: Path, learner: Learner, card: AgentCard) -> None:
    """Write ``agent.safetensors`` and ``agent.json`` into an existing directory."""
    weights = {name: value.detach().cpu().contiguous() for name, value in learner.state_dict().items()}
    save_file(weights, directory / WEIGHTS)
    (directory / CARD).write_text(json.dumps(card.model_dump(mode="json"), indent=2) + "\n")


def load_card(directory: str | Path) -> AgentCard:
    """The card of an exported agent."""
    folder = Path(directory)
    for name in (CARD, WEIGHTS):
        if not (folder / name).is_file():
            raise BadAgent(f"{folder} holds no exported agent: {name} is missing", hint="`dvc repro train` makes one")
    path = folder / CARD
    try:
        content = json.loads(path.read_text())
        if isinstance(content, dict) and content.get("format") != FORMAT:
            raise BadAgent(f"{path} has agent format {content.get('format')}", hint=f"this version reads {FORMAT}")
        return AgentCard.model_validate_json(json.dumps(content))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}" for e in error.errors()[:3])
        raise BadAgent(f"{path} is no agent of this version of ccwm: {problems}", hint="export it again") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadAgent(f"{path} is no JSON ({error})", hint="export the agent again") from None


def load_agent(directory: str | Path) -> Agent:
    """Read an exported agent; nothing in it is executed."""
    agent, weights = Agent(load_card(directory)), Path(directory) / WEIGHTS
    try:
        agent.load_state_dict(load_file(weights))
    except SafetensorError as error:
        raise BadAgent(f"{weights} is damaged ({error})", hint="export the agent again") from error
    except RuntimeError as error:  # torch's word for names and shapes that differ
        raise BadAgent(f"{weights} does not fit its {CARD}", hint=f"export both again. {error}") from error
    return agent.eval()
