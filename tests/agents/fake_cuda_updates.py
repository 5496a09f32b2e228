"""Whole updates on a CUDA device that is not there; a script, as torch asks once and early whether there is CUDA.

LD_PRELOAD=STAND_IN.so python fake_cuda_updates.py
"""

from __future__ import annotations

import lightning as L
import torch
from lightning.pytorch.plugins import MixedPrecision, Precision
from test_devices import CASES, EVERYTHING, emptied, empty
from tiny_learner import random_batch, tiny_learner
from torch._subclasses.fake_tensor import FakeTensorMode

from ccwm.settings.agent import Optimiser
from ccwm.training.module import CCWM

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


def training(module: CCWM, plugin: Precision) -> L.Trainer:
    """Lightning as far as a training step needs it; ``cpu`` as it cannot see the stand-in, and nothing is moved."""
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = L.Trainer(accelerator="cpu", enable_checkpointing=False, plugins=[plugin], **quiet)
    trainer.strategy.connect(module)
    return trainer


def check(precision="32-true", **settings):
    """Two updates, loss scaling and optimisers included; fake tensors refuse to be read and to leave their device."""
    learner, batch, seen = tiny_learner(**settings), random_batch(), set()
    learner.world_model.encoder.register_forward_hook(lambda module, given, made: seen.add(made.dtype))
    with FakeTensorMode():
        emptied(learner, DEVICE)
        module = CCWM(learner, optimiser=Optimiser(), seed=0)
        plugin = MixedPrecision(precision, DEVICE) if precision in HALF else Precision()
        module.trainer = training(module, plugin)
        module.on_fit_start()
        with plugin.train_step_context():
            for index in range(2):
                module.training_step(empty(batch, DEVICE), index)
    assert seen == {HALF.get(precision, torch.float32)}
    assert (module.scaler is not None) == (precision == "16-mixed")
    moments = [value for adam in module.configure_optimizers() for of in adam.state.values() for value in of.values()]
    made = [*module.sums.values(), *(p.grad for p in learner.parameters()), *moments]
    assert {(value.device.type, value.dtype) for value in made} == {(DEVICE, torch.float32)}


if __name__ == "__main__":
    for changes in ({"retrace": {"weight": 0.0}}, *CASES.values()):
        check(**EVERYTHING | changes)
    # Python's half of torch asks for the CUDA build itself before it lets a half precision be used there.
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda: True
    for precision in HALF:
        check(precision, **EVERYTHING)
    print("all on", DEVICE)
