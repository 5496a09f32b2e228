import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.reverse import ReverseAction


@pytest.mark.parametrize(("bounded", "wanted"), [(True, [math.tanh(1.0), -1.0]), (False, [1.0, -50.0])])
def test_the_later_state_comes_first_and_actions_are_squashed_where_they_are_bounded(bounded, wanted):
    reverse = ReverseAction(feature=1, actions=1, units=2, activation="relu", bounded=bounded)
    for layer in reverse.layers[::2]:
        nn.init.zeros_(layer.bias)
    reverse.layers[0].weight.data.copy_(torch.eye(2))  # hidden = relu(later, earlier)
    reverse.layers[2].weight.data.copy_(torch.eye(2))
    reverse.layers[4].weight.data.copy_(torch.tensor([[1.0, -10.0]]))
    later, earlier = torch.tensor([[2.0], [0.0]]), torch.tensor([[0.1], [5.0]])
    assert_close(reverse(later, earlier).flatten(), torch.tensor(wanted))  # 2 − 10 · 0.1; 0 − 10 · 5


def test_its_layers_may_be_normalised():
    reverse = ReverseAction(feature=3, actions=1, units=4, activation="silu", norm=True)
    kinds = [type(layer) for layer in reverse.layers]
    assert kinds == [nn.Linear, nn.LayerNorm, nn.SiLU] * 2 + [nn.Linear]
