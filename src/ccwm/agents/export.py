"""A trained agent as files: safetensors and JSON, nothing executable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import torch
from pydantic import Field, ValidationError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from ccwm.agents.build import build_learner
from ccwm.agents.learner import Learner
from ccwm.agents.policy import Policy
from ccwm.agents.world_model_learner import WorldModelLearner
from ccwm.envs.tasks import is_code
from ccwm.errors import UserError
from ccwm.files import write_atomically, write_json
from ccwm.readers import BadResult, read_object, reading
from ccwm.settings.agent import AgentConfig
from ccwm.settings.section import Name, Section, Seed, VariantName

FORMAT: Final = 3
"""Format 2 had no hashes, so that its weights cannot be checked."""
CARD, WEIGHTS = "agent.json", "agent.safetensors"
TENSORS, SEAL = "tensors", "sha256"
"""Keys of ``agent.json`` beside the card's: each tensor's dtype, shape and hash, and the hash of all other keys."""
Size = Annotated[int, Field(ge=1, le=65536)]


class BadAgent(UserError, ValueError):
    """Files or a name that no agent can be made of."""


class AgentCard(Section):
    """What must be known of an agent to rebuild it and to put it into its environment."""

    format: Literal[3] = FORMAT
    task: Name
    variant: VariantName
    seed: Seed
    observation_shape: Annotated[tuple[Size, ...], Field(min_length=1, max_length=3)]
    observation_dtype: Literal["uint8", "float32"]
    action_size: Annotated[int, Field(ge=1, le=4096)]
    env_steps: Annotated[int, Field(ge=0)]
    updates: Annotated[int, Field(ge=0)]
    config: AgentConfig


class Agent(nn.Module):
    """A trained agent of any kind: what it learned, its card, and greedy acting by ``reset`` and ``act``."""

    def __init__(self, card: AgentCard, *, task: str = "") -> None:
        super().__init__()
        self.card, self._task = card, task
        shape, actions = card.observation_shape, card.action_size
        self.learner = build_learner(card.config, observation_shape=shape, actions=actions)
        self.policies: list[Policy] = []

    @property
    def has_world_model(self) -> bool:
        """Whether the agent can predict: one without a world model can only act."""
        return self.learner.has_world_model

    @property
    def modelled(self) -> WorldModelLearner:
        """The learner of an agent that has a world model; UserError for any other."""
        if not isinstance(self.learner, WorldModelLearner):
            kind, hint = self.card.config.agent.kind, "choose one of kind world_model or model_free"
            raise UserError(f"an agent of kind {kind} has no world model", hint=hint)
        return self.learner

    @property
    def task(self) -> str:
        """The task to play: the one that the user named, else the card's, unless that is code: no file chooses code."""
        if not self._task and is_code(self.card.task):
            raise UserError(
                f"the task of this agent is code of its own ({self.card.task}), which a file must not choose",
                hint=f"if you trust it, name it yourself: --task {self.card.task}",
            )
        return self._task or self.card.task

    def policy(self, *, explore: bool = False) -> Policy:
        """The agent's policy for one environment: greedy, or exploring as in training."""
        return self.learner.policy(explore=explore)

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
    write_atomically(directory / WEIGHTS, save(weights))
    write_json(directory / CARD, sealed({**card.model_dump(mode="json"), TENSORS: fingerprints(weights)}))


def fingerprints(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """The dtype, the shape and the hash of each tensor."""
    found = {}
    for name, value in weights.items():
        digest = hashlib.sha256(value.flatten().view(torch.uint8).numpy().data).hexdigest()
        found[name] = f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)} {digest}"
    return found


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with the hash of all of it but an earlier hash: damage is found, not forgery."""
    rest = {name: value for name, value in content.items() if name != SEAL}
    return {**rest, SEAL: hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def load_card(directory: str | Path) -> AgentCard:
    """The card of an exported agent."""
    return _read_card(Path(directory))[0]


def _read_card(folder: Path) -> tuple[AgentCard, dict[str, str]]:
    """The card, and what it says of each tensor."""
    for name in (CARD, WEIGHTS):
        if not (folder / name).is_file():
            raise BadAgent(f"{folder} holds no exported agent: {name} is missing", hint="`dvc repro train` makes one")
    path = folder / CARD
    try:
        content = read_object(path)
        if content.get("format") != FORMAT:
            hint = f"this version reads {FORMAT}, in which all weights have hashes: train the agent again"
            raise BadAgent(f"{path} has agent format {content.get('format')}", hint=hint)
        known = {name: value for name, value in content.items() if name not in (TENSORS, SEAL)}
        card = AgentCard.model_validate_json(json.dumps(known))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}" for e in error.errors()[:3])
        raise BadAgent(f"{path} is no agent of this version of ccwm: {problems}", hint="export it again") from None
    except BadResult as error:
        raise BadAgent(error.message, hint="export the agent again") from error
    if content != sealed(content) or not isinstance(content.get(TENSORS), dict):
        hint = "it was edited or is damaged: export the agent again"
        raise BadAgent(f"{path} is not as it was saved (its SHA-256 differs)", hint=hint)
    return card, content[TENSORS]


def load_agent(directory: str | Path, *, task: str = "") -> Agent:
    """Read an exported agent; nothing in it is executed. ``task`` is what the user says that it plays."""
    (card, tensors), path = _read_card(Path(directory)), Path(directory) / WEIGHTS
    try:
        with reading(path, "safetensors file"):
            weights = load_file(path)
            there = fingerprints(weights)
    except BadResult as error:
        raise BadAgent(error.message, hint="export the agent again") from error
    if other := sorted(name for name in {*there, *tensors} if there.get(name) != tensors.get(name)):
        hint = f"it is damaged ({', '.join(other[:3])}): export the agent again"
        raise BadAgent(f"{path} is not as it was saved", hint=hint)
    if bad := [name for name, value in weights.items() if not value.isfinite().all()]:
        raise BadAgent(f"{path} holds weights that are not finite ({', '.join(bad[:3])})", hint="train the agent again")
    try:
        agent = Agent(card, task=task)
        agent.learner.load_state_dict(weights)
    except RuntimeError as error:  # torch's word for names and shapes that differ, and for too large ones
        raise BadAgent(f"{path} does not fit its {CARD}", hint=f"export both again. {error}") from error
    return agent.eval()
