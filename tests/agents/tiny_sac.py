"""A SAC learner small enough to run in milliseconds."""

import torch
from tiny_learner import ACTIONS, NUMBERS, TINY, config_of

from ccwm.agents.sac import SACLearner

SAC = {
    **TINY,
    "agent": {"kind": "sac"},
    "env": {"observation": "state"},
    "retrace": {"weight": 0.0},
    "sac": {"layers": 1, "units": 8},
}


def tiny_sac(*, seed=0, **changes):
    """A learner of state vectors whose initial weights are a function of the seed; the dicts override its settings."""
    torch.manual_seed(seed)
    return SACLearner(config_of(SAC, **changes), observation_shape=(NUMBERS,), actions=ACTIONS)


def flatten(network, *outputs):
    """Make a network a constant: every weight 0, and its output layers' biases as given."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        for layer, bias in outputs:
            layer.bias.copy_(torch.tensor(bias))
