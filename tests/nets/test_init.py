"""Weights begin as TensorFlow's do."""

import math

import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.init import init_weights


def test_a_dense_layer_begins_uniform_within_glorots_bound():
    layer = init_weights(nn.Linear(300, 100), "glorot")
    bound = math.sqrt(6 / 400)  # √(6 / (fan in + fan out)) = 0.1225
    assert 0.99 * bound < layer.weight.abs().max() <= bound
    assert_close(layer.weight.std(), torch.tensor(bound / math.sqrt(3)), rtol=0.02, atol=0)
    assert not layer.bias.any()


def test_a_convolution_counts_its_kernel():
    layers = init_weights(nn.ModuleList([nn.Conv2d(32, 64, 4), nn.ConvTranspose2d(64, 32, 4)]), "glorot")
    bound = math.sqrt(6 / (16 * 96))  # 4 · 4 pixels of 32 and 64 channels: 0.0625
    for layer in layers:
        assert 0.99 * bound < layer.weight.abs().max() <= bound
        assert not layer.bias.any()


def test_a_recurrent_layer_has_orthogonal_gates():
    cell = init_weights(nn.GRUCell(10, 30), "glorot")
    for gate in cell.weight_hh.chunk(3):
        assert_close(gate @ gate.T, torch.eye(30), atol=1e-5, rtol=0)
    for gate in cell.weight_ih.chunk(3):
        assert gate.abs().max() <= math.sqrt(6 / 40)  # of one gate, not of the three together
        assert gate.abs().max() > math.sqrt(6 / 100)
    assert not cell.bias_ih.any()
    assert not cell.bias_hh.any()


def test_a_setting_names_the_initial_weights():
    for init, bound in (("glorot", math.sqrt(6 / 110)), ("torch", 1 / math.sqrt(10))):  # torch's: 1 / √(fan in)
        layer = init_weights(nn.Sequential(nn.Linear(10, 100)), init)[0]
        assert 0.99 * bound < layer.weight.abs().max() <= bound
        assert layer.bias.any().item() is (init == "torch")


def test_a_layer_norm_begins_as_it_is_and_a_layer_without_a_bias_is_redrawn():
    linear, norm = init_weights(nn.Sequential(nn.Linear(10, 100, bias=False), nn.LayerNorm(100)), "glorot")
    assert linear.weight.abs().max() > 0.99 * math.sqrt(6 / 110)
    assert_close((norm.weight.detach(), norm.bias.detach()), (torch.ones(100), torch.zeros(100)))
