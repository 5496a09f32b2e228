"""A tiny module, and a batch of real episodes."""

from __future__ import annotations

import pytest
from project import TASK, Project

from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.structs import Batch
from ccwm.training.kinds import build_module
from ccwm.training.module import CCWM


@pytest.fixture
def module(collected: Project) -> CCWM:
    return build_module(collected.settings().agent_config, seed=0, observation_shape=(32, 32, 3), actions=2)


@pytest.fixture
def batches(collected: Project) -> list[Batch]:
    store = EpisodeStore(collected.root / "data" / TASK / "0" / "train", read_only=True)
    sampler = WindowSampler(store, batch=2, length=6, seed=0)
    return [sampler.draw(update) for update in range(6)]
