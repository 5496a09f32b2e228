"""A model-free learner small enough to run in milliseconds."""

import lightning as L
import torch
from tiny_learner import ACTIONS, NUMBERS, TINY, config_of
from tiny_sac import SAC

from ccwm.agents.model_free import ModelFreeLearner
from ccwm.training.model_free import ModelFree, ModelFreeUpdater

MODEL_FREE = {
    **TINY,
    "agent": {"kind": "model_free"},
    "env": {"observation": "state", "size": 32},
    "model": {**TINY["model"], "vector_units": 8},
    "sac": SAC["sac"],
}


def tiny_model_free(*, seed=0, pixels=False, **changes):
    """A learner whose initial weights are a function of the seed; the dicts override its settings."""
    torch.manual_seed(seed)
    shape = (32, 32, 3) if pixels else (NUMBERS,)
    return ModelFreeLearner(config_of(MODEL_FREE, **changes), observation_shape=shape, actions=ACTIONS)


def model_free_updater(*, env_steps=0, **changes):
    """An updater of a tiny learner on this CPU."""
    module = ModelFree(tiny_model_free(**changes), seed=0)
    module.counters.env_steps = env_steps
    return ModelFreeUpdater(L.Fabric(accelerator="cpu", devices=1), module)
