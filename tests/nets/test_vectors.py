"""State vectors on their way in and out."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.vectors import VectorDecoder, VectorEncoder

PLAIN = {"activation": "relu", "norm": False}


def encoder(*, size=3, units=5, layers=2, squash=False, **style):
    return VectorEncoder(size=size, units=units, layers=layers, squash=squash, **(PLAIN | style))


def kinds(module):
    return [(type(layer).__name__, getattr(layer, "out_features", None)) for layer in module.layers]


def test_an_encoder_is_hidden_layers_and_a_decoder_ends_with_a_linear_one():
    hidden = [("Linear", 5), ("ReLU", None)] * 2
    assert kinds(encoder()) == hidden
    decoder = VectorDecoder(feature=7, size=3, units=5, layers=2, **PLAIN)
    assert kinds(decoder) == [*hidden, ("Linear", 3)]
    assert encoder().outputs == 5
    assert encoder()(torch.zeros(4, 2, 3)).shape == (4, 2, 5)
    assert decoder(torch.zeros(4, 2, 7)).shape == (4, 2, 3)


def test_layers_may_be_normalised_and_have_another_activation():
    hidden = [("Linear", 5), ("LayerNorm", None), ("SiLU", None)]
    style = {"activation": "silu", "norm": True}
    assert kinds(encoder(**style)) == hidden * 2
    assert kinds(VectorDecoder(feature=7, size=3, units=5, layers=1, **style)) == [*hidden, ("Linear", 3)]


def test_an_encoder_by_hand():
    one = encoder(size=2, units=1, layers=1)
    one.layers[0].weight.data.copy_(torch.tensor([[1.0, -2.0]]))
    one.layers[0].bias.data.fill_(0.5)
    # relu(3 − 2 · 1 + 0.5), relu(0 − 2 · 4 + 0.5)
    assert_close(one(torch.tensor([[3.0, 1.0], [0.0, 4.0]])), torch.tensor([[1.5], [0.0]]))


@pytest.mark.parametrize(
    ("squash", "wanted"),
    [(False, [0.0, -3.0, math.e - 1]), (True, [0.0, -2 * math.log(2), 1.0])],  # −log(1 + 3), log(1 + e − 1)
)
def test_what_is_encoded_and_predicted(squash, wanted):
    one = encoder(squash=squash)
    seen = torch.tensor([[0.0, -3.0, math.e - 1]])
    for dtype in (torch.float32, torch.float64):
        target = one.target(seen, dtype)
        assert_close(target, torch.tensor([wanted], dtype=dtype), rtol=1e-6, atol=1e-6)
        back = one.to_observation(target)
        assert back.dtype == torch.float32
        assert_close(back, seen, rtol=1e-6, atol=1e-6)


def test_squashing_is_not_done_twice():
    """``forward`` takes what ``target`` gives."""
    one = encoder(size=1, units=1, layers=1, squash=True)
    nn.init.ones_(one.layers[0].weight)
    nn.init.zeros_(one.layers[0].bias)
    assert_close(one(one.target(torch.tensor([[math.e - 1]]), torch.float32)), torch.tensor([[1.0]]))
