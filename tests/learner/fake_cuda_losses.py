"""The losses of an update on a CUDA device that is not there; run as a script, so that what it registers stays here.

python fake_cuda_losses.py GUARD.so
"""

from __future__ import annotations

import ctypes
import sys

import torch
from test_devices import CASES, EVERYTHING
from tiny_learner import random_batch, tiny_learner
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

DEVICE = "cuda"
shapes = torch.library.Library("aten", "IMPL", "Meta")  # a GRU cell's fused kernel has none of its own


@torch.library.impl(shapes, "_thnn_fused_gru_cell")
def gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return torch.empty_like(hx), hx.new_empty(len(hx), 5 * hx.shape[1])


def on_device(parts):
    return type(parts)(*(torch.empty(part.shape, dtype=part.dtype, device=DEVICE) for part in parts))


def check(**settings):
    batch, learner = random_batch(), tiny_learner(**settings)
    noise = learner.noise(0, 0, batch)
    with FakeTensorMode():
        for module in learner.modules():
            for name, value in module.named_parameters(recurse=False):
                setattr(module, name, nn.Parameter(torch.empty(value.shape, device=DEVICE)))
            for name, value in module.named_buffers(recurse=False):
                setattr(module, name, torch.empty(value.shape, device=DEVICE))
        losses = learner(on_device(batch), on_device(noise), 0)
    made = [*losses.terms.values(), *losses.parts.values()]
    assert {value.device.type for value in made} == {DEVICE}


if __name__ == "__main__":
    ctypes.CDLL(sys.argv[1])
    for changes in ({"retrace": {"weight": 0.0}}, *CASES.values()):
        check(**EVERYTHING | changes)
    print("all on", DEVICE)
