import math

import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.reverse import ReverseAction


def test_the_later_state_comes_first_and_actions_are_squashed():
    reverse = ReverseAction(feature=1, actions=1, units=2)
    for layer in reverse.layers[::2]:
        nn.init.zeros_(layer.bias)
    reverse.layers[0].weight.data.copy_(torch.eye(2))  # hidden = relu(later, earlier)
    reverse.layers[2].weight.data.copy_(torch.eye(2))
    reverse.layers[4].weight.data.copy_(torch.tensor([[1.0, -10.0]]))
    later, earlier = torch.tensor([[2.0], [0.0]]), torch.tensor([[0.1], [5.0]])
    wanted = torch.tensor([[math.tanh(1.0)], [-1.0]])  # 2 − 10 · 0.1; 0 − 10 · 5
    assert_close(reverse(later, earlier), wanted)
