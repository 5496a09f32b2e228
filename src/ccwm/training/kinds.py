"""What trains each kind of agent."""

from __future__ import annotations

import lightning as L
import torch

from ccwm.agents.build import build_learner
from ccwm.agents.distributed import own_rows
from ccwm.agents.model_based import ModelBasedLearner
from ccwm.replay.memory import MemorySampler
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.seeds import named_seed
from ccwm.settings.agent import AgentConfig
from ccwm.training.module import CCWM, AgentModule
from ccwm.training.update import JointUpdater, Updater


def build_module(config: AgentConfig, *, seed: int, observation_shape: tuple[int, ...], actions: int) -> AgentModule:
    """An untrained agent, a function of the seed; variants of one seed share the weights that they have in common."""
    with torch.random.fork_rng():
        torch.manual_seed(named_seed("weights", seed))
        learner = build_learner(config, observation_shape=observation_shape, actions=actions)
    if isinstance(learner, ModelBasedLearner):
        return CCWM(learner, seed=seed)
    if config.agent.kind == "model_free":
        from ccwm.training.model_free import ModelFree  # here, since stable-baselines3 takes a second to import

        return ModelFree(learner, seed=seed)
    if config.agent.kind == "playvirtual":
        from ccwm.training.playvirtual import PlayVirtual

        return PlayVirtual(learner, seed=seed)
    return AgentModule(learner, seed=seed)


def build_updater(fabric: L.Fabric, module: AgentModule) -> Updater:
    """What makes the updates of a module, with its optimiser on the devices of a Fabric."""
    if isinstance(module, CCWM):
        return JointUpdater(fabric, module)
    from ccwm.training.model_free import ModelFreeUpdater, Representation  # here, too
    from ccwm.training.sac import SACUpdater

    return ModelFreeUpdater(fabric, module) if isinstance(module, Representation) else SACUpdater(fabric, module)


def window_length(config: AgentConfig) -> int:
    """Steps of a window: a transition of SAC's are two, PlayVirtual's as many as it predicts and stacks."""
    if config.agent.kind == "playvirtual":
        return config.playvirtual.length + (config.playvirtual.frames if config.env.observation == "pixels" else 1)
    return 2 if config.agent.kind == "sac" else config.train.length


def build_sampler(config: AgentConfig, store: EpisodeStore, *, seed: int) -> WindowSampler:
    """What draws the windows of every batch."""
    in_memory = config.agent.kind != "world_model" and config.env.observation == "state"
    kind = MemorySampler if in_memory else WindowSampler
    return kind(
        store,
        batch=config.train.batch,
        length=window_length(config),
        seed=seed,
        sampling=config.replay.sampling,
        columns=own_rows(config.train.batch),
    )
