"""Whole updates on a CUDA device that is not there; a script, as torch asks once and early whether there is CUDA.

LD_PRELOAD=STAND_IN.so python fake_cuda_updates.py few|all
"""

from __future__ import annotations

import sys

import lightning as L
import torch
from lightning.fabric.plugins import MixedPrecision
from test_devices import CASES, emptied, empty, small_update
from tiny_learner import trained_parameters
from torch._subclasses.fake_tensor import FakeTensorMode

from ccwm.training.module import CCWM
from ccwm.training.update import JointUpdater

DEVICE = "cuda"
HALF = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
shapes = torch.library.Library("aten", "IMPL", "Meta")  # a GRU cell's fused kernels have none of their own


@torch.library.impl(shapes, "_thnn_fused_gru_cell")
def gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return torch.empty_like(hx), hx.new_empty(len(hx), 5 * hx.shape[1])


@torch.library.impl(shapes, "_thnn_fused_gru_cell_backward")
def gru_cell_backward(grad_hy, workspace, has_bias):
    rows, width = grad_hy.shape
    gates = [grad_hy.new_empty(rows, 3 * width) for _ in range(2)]
    biases = [grad_hy.new_empty(3 * width) if has_bias else None for _ in range(2)]
    return *gates, torch.empty_like(grad_hy), *biases


class OnCuda(L.Fabric):
    """Fabric with its precision and its backward pass; ``cpu`` to it, as it cannot see the stand-in."""

    device = torch.device(DEVICE, 0)

    def to_device(self, obj):
        return obj  # the weights are there already


def check(changes, precision=None):
    """Two updates, loss scaling and optimiser included; fake tensors refuse to be read and to leave their device."""
    (learner, batch), seen = small_update(changes), set()
    learner.world_model.encoder.layers[0].register_forward_hook(lambda module, given, made: seen.add(made.dtype))
    with FakeTensorMode():
        emptied(learner, DEVICE)
        plugin = MixedPrecision(precision, DEVICE) if precision in HALF else None
        updater = JointUpdater(OnCuda(accelerator="cpu", devices=1, plugins=plugin), CCWM(learner, seed=0))
        for _ in range(2):
            updater.step(empty(batch, "cpu"))
    assert seen == {HALF.get(precision, torch.float32)}
    assert (updater.scaler is not None) == (precision == "16-mixed")
    moments = [value for state in updater.adam.state.values() for value in state.values()]
    assert len(moments) == 3 * len(trained_parameters(learner))  # two moments and a count of steps
    made = [*updater.sums.values(), *(p.grad for p in trained_parameters(learner)), *moments]
    assert {(value.device.type, value.dtype) for value in made} == {(DEVICE, torch.float32)}
    flag = updater.check.wrong  # unread
    assert flag is not None
    assert flag.device.type == DEVICE


if __name__ == "__main__":
    torch.Tensor.pin_memory = lambda part: part  # fake tensors have no memory to pin
    # Python's half of torch asks for the CUDA build itself before it lets a half precision be used there.
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda: True
    check(CASES["auto"])
    check(CASES["everything"], "16-mixed")
    check(CASES["robust"], "bf16-mixed")
    if sys.argv[1] == "all":
        check(CASES["everything"], "bf16-mixed")
        for changes in ({"retrace": {"weight": 0.0}}, *CASES.values()):
            check(changes)
    print("all on", DEVICE)
