import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.mlp import ScalarHead, dense


def test_a_dense_head_has_its_hidden_layers_and_a_linear_one():
    kinds = [(type(layer).__name__, getattr(layer, "out_features", None)) for layer in dense(3, 5, 2, 2, nn.ELU)]
    assert kinds == [("Linear", 5), ("ELU", None), ("Linear", 5), ("ELU", None), ("Linear", 2)]


def test_a_scalar_head_by_hand():
    head = ScalarHead(feature=2, units=1, layers=1)
    for layer, weight, bias in ((head.layers[0], [[1.0, -2.0]], 1.0), (head.layers[2], [[3.0]], 0.5)):
        layer.weight.data.copy_(torch.tensor(weight))
        layer.bias.data.fill_(bias)
    # relu(2 − 2 · 1 + 1) = 1 → 3 + 0.5;  relu(0 − 2 · 4 + 1) = 0 → 0.5.  No activation after the last layer.
    assert_close(head(torch.tensor([[[2.0, 1.0]], [[0.0, 4.0]]])), torch.tensor([[3.5], [0.5]]))
