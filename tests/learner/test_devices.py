"""An update names no device and no number format: it runs where its weights and its batch are."""

import shutil
import subprocess
import sys
from pathlib import Path

import fake_cuda_updates
import pytest
import torch
from tiny_learner import backward, losses_of, random_batch, tiny_learner

HERE = Path(__file__).parent


def test_whole_updates_stay_on_a_cuda_device_and_never_wait_for_it(tmp_path):
    """Forward, backward, clipping, the check and fused Adam, with and without loss scaling."""
    if shutil.which("g++") is None:
        pytest.skip("autograd on fake CUDA tensors needs a device guard, which g++ makes for a CPU build of torch")
    guard, torch_files = tmp_path / "guard.so", Path(torch.__file__).parent
    subprocess.run(
        ["g++", "-std=c++20", "-shared", "-fPIC", f"-I{torch_files / 'include'}", HERE / "cuda_guard.cpp", "-o", guard,
         f"-L{torch_files / 'lib'}", "-lc10"],
        check=True,
    )  # fmt: skip
    run = subprocess.run(
        [sys.executable, HERE / "fake_cuda_updates.py", guard], capture_output=True, text=True, timeout=280
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split("\n")[:-1] == [*fake_cuda_updates.CASES, "16-mixed"]


def test_double_precision_goes_all_the_way():
    learner = tiny_learner(**fake_cuda_updates.EVERYTHING).double()
    losses = losses_of(learner, random_batch(dtype=torch.float64))
    backward(learner, losses)
    assert {value.dtype for value in losses.terms.values()} == {torch.float64}
    assert {parameter.grad.dtype for parameter in learner.parameters()} == {torch.float64}
