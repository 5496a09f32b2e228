"""Every kind of agent has its module and its updater."""

from __future__ import annotations

from project import TASK, Project
from tiny_learner import ACTIONS, NUMBERS, config_of
from tiny_model_free import MODEL_FREE
from tiny_playvirtual import PLAYVIRTUAL
from tiny_sac import SAC

from ccwm.replay.memory import MemorySampler
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.training.devices import launch
from ccwm.training.kinds import build_module, build_sampler, build_updater, window_length
from ccwm.training.model_free import ModelFree, ModelFreeUpdater
from ccwm.training.module import CCWM, AgentModule
from ccwm.training.playvirtual import PlayVirtual
from ccwm.training.sac import SACUpdater
from ccwm.training.update import JointUpdater


def test_a_world_model_agent_is_updated_jointly(collected: Project) -> None:
    config = collected.settings().agent_config
    module = build_module(config, seed=3, observation_shape=(32, 32, 3), actions=2)
    assert isinstance(module, CCWM)
    assert module.seed == 3
    assert isinstance(build_updater(launch(config.trainer), module), JointUpdater)


def test_a_sac_agent_is_updated_by_stable_baselines_from_transitions(collected: Project) -> None:
    config = config_of(SAC)
    module = build_module(config, seed=3, observation_shape=(NUMBERS,), actions=ACTIONS)
    assert type(module) is AgentModule
    assert isinstance(build_updater(launch(config.trainer), module), SACUpdater)
    assert window_length(config) == 2
    store = EpisodeStore(collected.root / "data" / TASK / "0" / "train", read_only=True)
    assert isinstance(build_sampler(config, store, seed=0), MemorySampler)


def test_a_model_free_agent_is_updated_by_both_from_whole_windows(collected: Project) -> None:
    config = config_of(MODEL_FREE)
    module = build_module(config, seed=3, observation_shape=(NUMBERS,), actions=ACTIONS)
    assert isinstance(module, ModelFree)
    assert isinstance(build_updater(launch(config.trainer), module), ModelFreeUpdater)
    assert window_length(config) == config.train.length
    store = EpisodeStore(collected.root / "data" / TASK / "0" / "train", read_only=True)
    assert isinstance(build_sampler(config, store, seed=0), MemorySampler)
    pixels = config_of(MODEL_FREE, env={"observation": "pixels"})
    assert type(build_sampler(pixels, store, seed=0)) is WindowSampler


def test_playvirtual_is_updated_by_both_from_short_windows() -> None:
    config = config_of(PLAYVIRTUAL)  # predicts 2 steps, stacks 2 images
    module = build_module(config, seed=3, observation_shape=(NUMBERS,), actions=ACTIONS)
    assert isinstance(module, PlayVirtual)
    assert isinstance(build_updater(launch(config.trainer), module), ModelFreeUpdater)
    assert window_length(config) == 3
    assert window_length(config_of(PLAYVIRTUAL, env={"observation": "pixels"})) == 4


def test_windows_are_those_of_the_settings(collected: Project) -> None:
    config = collected.settings().agent_config
    store = EpisodeStore(collected.root / "data" / TASK / "0" / "train", read_only=True)
    sampler = build_sampler(config, store, seed=5)
    assert type(sampler) is WindowSampler
    assert (sampler.batch, sampler.length, sampler.seed) == (config.train.batch, config.train.length, 5)
    assert window_length(config) == config.train.length
