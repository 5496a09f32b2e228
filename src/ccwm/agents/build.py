"""The learner of each kind of agent."""

from __future__ import annotations

from ccwm.agents.learner import Learner
from ccwm.agents.model_based import ModelBasedLearner
from ccwm.settings.agent import AgentConfig


def build_learner(config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> Learner:
    """An untrained learner of the kind that ``agent.kind`` names."""
    if config.agent.kind == "sac":
        from ccwm.agents.sac import SACLearner  # here, since stable-baselines3 takes a second to import

        return SACLearner(config, observation_shape=observation_shape, actions=actions)
    if config.agent.kind == "model_free":
        from ccwm.agents.model_free import ModelFreeLearner

        return ModelFreeLearner(config, observation_shape=observation_shape, actions=actions)
    if config.agent.kind == "playvirtual":
        from ccwm.agents.playvirtual import PlayVirtualLearner

        return PlayVirtualLearner(config, observation_shape=observation_shape, actions=actions)
    return ModelBasedLearner(config, observation_shape=observation_shape, actions=actions)
