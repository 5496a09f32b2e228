"""The model-free instantiation of Appendix B: a world model that is taught to be retraced, and SAC on its features."""

from __future__ import annotations

import torch
from torch import nn

from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.agents.retracing import SeparateRetracing
from ccwm.agents.sac import SoftControl, build_networks
from ccwm.agents.world_model_learner import WorldModelLearner
from ccwm.settings.agent import AgentConfig


class ModelFreeLearner(WorldModelLearner):
    """World model, SAC's networks and, where the weight of retracing is above 0, a reversed model and truncation."""

    acting_parts = ("world_model.encoder.", "world_model.rssm.", "networks.actor.")

    def __init__(self, config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__(config, observation_shape=observation_shape, actions=actions)
        self.networks = build_networks(config.sac, inputs=self.world_model.rssm.feature, actions=actions)
        self.log_temperature = nn.Parameter(torch.zeros(1))  # α = 1
        self.build_retracing(SeparateRetracing, discount=config.sac.discount)

    @property
    def control(self) -> SoftControl:
        """SAC's actor and critics."""
        return SoftControl(self.networks, self.actions)

    def policy(self, *, explore: bool = False) -> RecurrentPolicy:
        """SAC's actor on the posterior: its mode, or draws from both."""
        return RecurrentPolicy(self.world_model, self.control, exploration=0.0 if explore else None)

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The representation's parameters; SAC steps its own."""
        reversed_model = [] if self.retracing is None else list(self.retracing.parameters())
        return {"model": [*self.world_model.parameters(), *reversed_model]}
