import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.init import init_weights
from ccwm.nets.mlp import ContinueHead, Head, dense
from ccwm.ops.scalars import Bernoulli, TwoHot, UnitGaussian


def kinds(module):
    return [(type(layer).__name__, getattr(layer, "out_features", None)) for layer in module]


def test_a_dense_network_has_its_hidden_layers_and_a_linear_one():
    plain = kinds(dense(3, 5, 2, 2, activation="elu"))
    assert plain == [("Linear", 5), ("ELU", None), ("Linear", 5), ("ELU", None), ("Linear", 2)]


def test_a_layer_norm_stands_before_each_activation_and_takes_the_place_of_the_bias():
    network = dense(3, 5, 2, 2, activation="silu", norm=True)
    hidden = [("Linear", 5), ("LayerNorm", None), ("SiLU", None)]
    assert kinds(network) == [*hidden, *hidden, ("Linear", 2)]  # the output is not normalised
    assert [layer.bias is not None for layer in network if isinstance(layer, nn.Linear)] == [False, False, True]
    assert [layer.normalized_shape for layer in network if isinstance(layer, nn.LayerNorm)] == [(5,), (5,)]


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("activation", ["relu", "elu", "silu"])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (2, 1, 4, 3)])
def test_a_dense_network_is_its_layers_one_behind_the_other(shape, activation, norm):
    """To the bit, gradients included, though a ReLU writes where it reads and leading axes are folded."""
    network = dense(3, 5, 2, 2, activation=activation, norm=norm)
    layers = [nn.ReLU() if isinstance(layer, nn.ReLU) else layer for layer in network]
    given = torch.randn(shape, requires_grad=True)
    plain = given
    for layer in layers:
        plain = layer(plain)
    got = network(given)
    assert torch.equal(got, plain)
    asked = [given, *network.parameters()]
    got, wanted = (torch.autograd.grad(out.square().sum(), asked) for out in (got, plain))
    assert_close(got, wanted, rtol=0, atol=0)


def test_what_a_relu_overwrites_is_copied_nowhere():
    """Autograd copies what is written into a view, which a linear layer gives of more than two axes."""
    nodes, seen = [dense(3, 5, 2, 2, activation="relu")(torch.randn(2, 4, 3)).grad_fn], set()
    while nodes:
        node = nodes.pop()
        seen.add(node.name())
        nodes += [above for above, _ in node.next_functions if above is not None]
    assert "ReluBackward0" in seen
    assert not any("Slices" in name or "AsStrided" in name for name in seen)


def test_a_normalised_layer_by_hand():
    network = dense(1, 2, 1, 1, activation="relu", norm=True).double()
    network[0].weight.data.copy_(torch.tensor([[1.0], [3.0]]))
    network[3].weight.data.copy_(torch.tensor([[10.0, 100.0]]))
    network[3].bias.data.fill_(0.5)
    # 2 → (2, 6): mean 4, variance 4 → (∓ 2 / √(4 + 0.001)); ReLU keeps the second: 100 · 0.999875 + 0.5.
    got = network(torch.tensor([[2.0]], dtype=torch.float64))
    assert_close(got, torch.tensor([[200 / math.sqrt(4.001) + 0.5]], dtype=torch.float64))
    # Ten times the input is normalised to nearly the same.
    assert_close(network(torch.tensor([[20.0]], dtype=torch.float64)), got, rtol=1e-3, atol=0)


def filled(head):
    """One hidden unit, relu(x − 2y + 1), and outputs 3h + 0.5."""
    head.layers[0].weight.data.copy_(torch.tensor([[1.0, -2.0]]))
    head.layers[0].bias.data.fill_(1.0)
    head.layers[2].weight.data.fill_(3.0)
    head.layers[2].bias.data.fill_(0.5)
    return head


SEEN = torch.tensor([[[2.0, 1.0]], [[0.0, 4.0]]])
# relu(2 − 2 · 1 + 1) = 1 → 3 + 0.5;  relu(0 − 2 · 4 + 1) = 0 → 0.5.  No activation after the last layer.
OUT = torch.tensor([[3.5], [0.5]])


def test_a_gaussian_head_by_hand():
    head = filled(Head("gaussian", feature=2, units=1, layers=1, activation="relu"))
    found = head(SEEN)
    assert isinstance(found, UnitGaussian)
    assert_close(found.mean, OUT)
    assert not [name for name, _ in head.named_buffers()]


def test_a_continue_head_by_hand():
    found = filled(ContinueHead(feature=2, units=1, layers=1, activation="relu"))(SEEN)
    assert isinstance(found, Bernoulli)
    assert_close(found.mean, torch.sigmoid(OUT))


def test_a_head_of_bins_by_hand():
    limit = 2 * math.log(2)  # bins at −3, −1, 0, 1, 3
    head = filled(Head("two_hot", feature=2, units=1, layers=1, activation="relu", bins=5, limit=limit))
    assert_close(head.bins, torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0]))
    head.layers[2].bias.data.copy_(torch.tensor([0.0, 0.0, math.log(2), math.log(2), math.log(2)]))
    found = head(SEEN)
    assert isinstance(found, TwoHot)
    assert_close(found.mean, torch.full((2, 1), 0.5))  # (−3 − 1 + 2 · 1 + 2 · 3) / 8; 3h moves all logits alike
    assert "bins" not in head.state_dict()  # a function of the settings


@pytest.mark.parametrize("kind", ["gaussian", "two_hot"])
@pytest.mark.parametrize("init", ["glorot", "torch"])
def test_a_head_that_wants_zero_begins_there_and_can_learn(kind, init):
    heads = [
        init_weights(Head(kind, feature=3, units=4, layers=1, activation="silu", norm=True, zero=zero), init)
        for zero in (True, False)
    ]
    feature = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    means = [head(feature).mean for head in heads]
    assert_close(means[0], torch.zeros(5), atol=1e-5, rtol=0)
    assert means[1].abs().min() > 1e-5
    heads[0](feature).nll(torch.ones(5)).sum().backward()
    assert heads[0].layers[-1].weight.grad.any()
    assert heads[0].layers[0].weight.any()  # only the last layer is zero


def test_zero_heads_below_a_module_are_found_and_no_other_layer_is_touched():
    parts = nn.ModuleDict({
        "zero": Head("gaussian", feature=3, units=4, layers=2, activation="relu", zero=True),
        "other": Head("gaussian", feature=3, units=4, layers=2, activation="relu"),
        "continues": ContinueHead(feature=3, units=4, layers=2, activation="relu"),
    })  # fmt: skip
    init_weights(nn.Sequential(parts), "glorot")
    flat = {name for name, value in parts.named_parameters() if "weight" in name and not value.any()}
    assert flat == {"zero.layers.4.weight"}
