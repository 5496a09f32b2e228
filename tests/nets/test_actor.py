import math

import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.actor import Actor


def test_an_untrained_actor_has_the_spread_that_was_asked_for():
    actor = Actor(feature=3, actions=2, units=4, layers=1, init_std=3.0, min_std=1e-4, mean_scale=2.0)
    nn.init.zeros_(actor.layers[-1].weight)
    nn.init.zeros_(actor.layers[-1].bias)
    assert_close(actor(torch.ones(1, 3)).std, torch.full((1, 2), 3.0001))
    nn.init.constant_(actor.layers[-1].bias, 2.0)
    mean = 2.0 * math.tanh(1.0)  # squashed into ± 2
    assert_close(actor(torch.ones(1, 3)).mean, torch.full((1, 2), mean))
    assert_close(actor.greedy(torch.ones(1, 3)), torch.full((1, 2), math.tanh(mean)))
