"""Whole updates on a CUDA device that is not there; run as a script, so that its stand-in of a guard stays here.

    python fake_cuda_updates.py GUARD.so

A fake tensor has a device, a dtype and a shape but no numbers. It refuses to meet one of another device, and to tell a
number to Python: an update that passes here neither mixes devices nor waits for the device.
"""

from __future__ import annotations

import ctypes
import sys

import torch
from tiny_learner import random_batch, tiny_learner
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

from ccwm.agent.noise import Noise
from ccwm.config import Optimiser
from ccwm.training.module import CCWM

DEVICE = "cuda"
EVERYTHING = {"model": {"continues": True, "free_nats": 1.0}, "retrace": {"horizon": 2, "samples": 2},
              "truncation": {"mode": "adaptive", "window": 2, "signal": "q", "start": 0}}  # fmt: skip
CASES = {
    "dreamer": {"retrace": {"weight": 0.0}},
    "everything": EVERYTHING,
    "l2": EVERYTHING | {"retrace": {"loss": "l2", "reverse_action": "separate"}},
    "reconstruction": EVERYTHING | {"retrace": {"loss": "reconstruction", "detach": "original"}},
    "algorithm1": EVERYTHING | {"truncation": {"mode": "adaptive", "window": 2, "rule": "algorithm1", "start": 0}},
    "auto": EVERYTHING | {"truncation": {"mode": "auto", "window": 2, "start": 0}},
    "scheduled": EVERYTHING | {"truncation": {"mode": "scheduled"}},
    "untruncated": EVERYTHING | {"truncation": {"mode": "none"}},
    "reinforce": EVERYTHING | {"behaviour": {"gradient": "reinforce", "entropy": 0.1, "starts": 4}},
}


shapes = torch.library.Library("aten", "IMPL", "Meta")  # a GRU cell's fused kernel has none of its own


@torch.library.impl(shapes, "_thnn_fused_gru_cell")
def gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return torch.empty_like(hx), hx.new_empty(len(hx), 5 * hx.shape[1])


@torch.library.impl(shapes, "_thnn_fused_gru_cell_backward")
def gru_cell_backward(grad, workspace, has_bias):
    gates = grad.new_empty(len(grad), 3 * grad.shape[1])
    bias = gates.new_empty(gates.shape[1]) if has_bias else None
    return gates, torch.empty_like(gates), torch.empty_like(grad), bias, None if bias is None else bias.clone()


class FakeTraining(CCWM):
    """Training without Lightning's trainer, whose noise has no generator to come from."""

    def manual_backward(self, loss: torch.Tensor, *args: object, **kwargs: object) -> None:
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        loss.backward(*args, **kwargs)


def on_device(tree):
    return tree_map_only(torch.Tensor, lambda part: torch.empty(part.shape, dtype=part.dtype, device=DEVICE), tree)


def devices(tree) -> set[str]:
    found: set[str] = set()
    tree_map_only(torch.Tensor, lambda part: found.add(part.device.type), tree)
    return found


def two_updates(scaled: bool, **settings: dict[str, object]) -> None:
    batch = random_batch()
    learner = tiny_learner(**settings)
    noise: Noise = learner.noise(0, 0, batch)
    with FakeTensorMode():
        for part in learner.modules():
            for name, value in part.named_parameters(recurse=False):
                setattr(part, name, nn.Parameter(on_device(value)))
            for name, value in part.named_buffers(recurse=False):
                setattr(part, name, on_device(value))
        learner.noise = lambda *_: on_device(noise)  # type: ignore[method-assign]
        module = FakeTraining(learner, optimiser=Optimiser(), seed=0)
        if scaled:
            module.scaler = torch.amp.GradScaler(DEVICE)
        for update in range(2):
            with torch.autocast(DEVICE, dtype=torch.float16, enabled=scaled):
                module.training_step(on_device(batch), update)
        state = [optimiser.state for optimiser in module.parts_optimisers.values()]
        gradients = [parameter.grad for parameter in learner.parameters()]
        made = [module.sums, gradients, list(learner.parameters()), state, module.watch.wrong, module.watch.update]
        assert devices(made) == {DEVICE}, devices(made)
        assert all(gradient is not None for gradient in gradients)
        assert module.counters.updates == 2


if __name__ == "__main__":
    ctypes.CDLL(sys.argv[1])
    for name, settings in CASES.items():
        two_updates(False, **settings)
        print(name)
    two_updates(True, **EVERYTHING)
    print("16-mixed")
