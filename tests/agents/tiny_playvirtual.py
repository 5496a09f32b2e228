"""A PlayVirtual learner small enough to run in milliseconds."""

import lightning as L
import torch
from tiny_learner import ACTIONS, NUMBERS, TINY, config_of
from tiny_model_free import MODEL_FREE

from ccwm.agents.playvirtual import PlayVirtualLearner
from ccwm.training.model_free import ModelFreeUpdater
from ccwm.training.playvirtual import PlayVirtual

PLAYVIRTUAL = {
    **MODEL_FREE,
    "agent": {"kind": "playvirtual"},
    "retrace": TINY["retrace"],
    "playvirtual": {"latent": 4, "units": 8, "sequences": 3, "length": 2, "frames": 2},
}


def tiny_playvirtual(*, seed=0, pixels=False, **changes):
    """A learner whose initial weights are a function of the seed; the dicts override its settings."""
    torch.manual_seed(seed)
    shape = (32, 32, 3) if pixels else (NUMBERS,)
    return PlayVirtualLearner(config_of(PLAYVIRTUAL, **changes), observation_shape=shape, actions=ACTIONS)


def playvirtual_updater(**changes):
    """An updater of a tiny learner on this CPU."""
    return ModelFreeUpdater(L.Fabric(accelerator="cpu", devices=1), PlayVirtual(tiny_playvirtual(**changes), seed=0))
