"""What every kind of agent is to those who train, save and play it."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from ccwm.agents.policy import Policy
from ccwm.settings.agent import AgentConfig
from ccwm.structs import Batch


class Learner(nn.Module):
    """The parts of an agent that learn; all that is learned is in its ``state_dict``."""

    has_world_model: ClassVar[bool]
    """Whether there is something to predict and to retrace with: what rollout-viz and the report ask."""
    acting_parts: ClassVar[tuple[str, ...]]
    """How the names of those weights begin that a policy needs."""

    def __init__(self, config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__()
        self.config, self.observation_shape, self.actions = config, observation_shape, actions

    @property
    def dtype(self) -> torch.dtype:
        """The number format of the weights."""
        return next(self.parameters()).dtype

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The parameters that each loss of an update trains."""
        raise NotImplementedError

    def after_step(self) -> None:
        """Move what follows the weights; called after each step of their optimiser."""

    def policy(self, *, explore: bool = False) -> Policy:
        """The policy for one environment: greedy, or exploring as in training."""
        raise NotImplementedError

    def retrace_skill(self, batch: Batch) -> dict[str, float]:
        """Further columns of the learning curve: how well the agent retraces, where it does."""
        return {}


def named(part: str, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """Prefix each name with the part that it belongs to."""
    return {f"{part}/{name}": value for name, value in values.items()}


def total(losses: dict[str, Tensor]) -> Tensor:
    """The sum of at least one scalar tensor."""
    first, *others = losses.values()
    for loss in others:
        first = first + loss
    return first
