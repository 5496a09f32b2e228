"""An update names no device and no number format: it runs where its weights and its batch are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_learner import backward, noise_of, random_batch, terms_of, tiny_learner, trained_parameters
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

ACCELERATOR = "lazy"  # as fake tensors it needs no hardware, and unlike "cuda" no stand-in for its build of torch
EVERYTHING = {"model": {"continues": True}, "retrace": {"horizon": 2, "samples": 2},
              "truncation": {"mode": "adaptive", "window": 2, "signal": "q"}}  # fmt: skip
CASES = {
    "everything": {},
    "auto": {"retrace": {"loss": "l2", "reverse_action": "separate"}, "truncation": {"mode": "auto", "window": 2}},
    "algorithm1": {"truncation": {"mode": "adaptive", "window": 2, "rule": "algorithm1"}},
    "scheduled": {
        "retrace": {"loss": "reconstruction", "detach": "original"},
        "truncation": {"mode": "scheduled"},
        "actor_critic": {"gradient": "reinforce", "entropy": 0.1, "starts_per_window": 2},
    },
    "robust": {"robust": True, "retrace": {"loss": "kl", "length": 2}},
    "released": {"retrace": {"loss": "released"}},
}


def small_update(changes):
    """A learner and its batch, as short as these settings allow: fake tensors are slow."""
    settings = EVERYTHING | changes
    settings["actor_critic"] = {"horizon": 2} | settings.get("actor_critic", {})
    return tiny_learner(**settings), random_batch(3, 2, robust=settings.get("robust", False))


def empty(parts, device):
    """The same structure with its tensors on a device, without numbers."""
    return type(parts)(
        *(part if isinstance(part, int) else torch.empty(part.shape, dtype=part.dtype, device=device) for part in parts)
    )


def emptied(learner, device):
    """The learner with its weights and buffers on a device, without numbers."""
    for module in learner.modules():
        for name, value in module.named_parameters(recurse=False):
            empty_value = torch.empty(value.shape, device=device)
            setattr(module, name, nn.Parameter(empty_value, requires_grad=value.requires_grad))
        for name, value in module.named_buffers(recurse=False):
            setattr(module, name, torch.empty(value.shape, device=device))


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_an_update_stays_on_its_device_and_never_waits_for_a_number(changes):
    # A fake tensor refuses to meet one of another device, and to tell its value to Python.
    learner, batch = small_update(changes)
    noise = noise_of(learner, batch)
    with FakeTensorMode():
        emptied(learner, ACCELERATOR)
        losses, metrics = terms_of(learner, empty(batch, ACCELERATOR), noise=empty(noise, ACCELERATOR))
        backward(learner, losses)
    made = [*metrics.values(), *losses.values(), *(p.grad for p in trained_parameters(learner))]
    assert {value.device.type for value in made} == {ACCELERATOR}


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="the stand-in is for builds of torch without CUDA")
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ makes the stand-in for what a CUDA build of torch has")
@pytest.mark.parametrize("cases", ["few", pytest.param("all", marks=pytest.mark.slow)])
def test_whole_updates_stay_on_a_cuda_device_and_never_wait_for_it(cases, tmp_path):
    """Noise, losses, gradients, clipping, the check for NaN and fused Adam, in full and in half precision."""
    stand_in, here, files = tmp_path / "stand_in.so", Path(__file__).parent, Path(torch.__file__).parent
    options = ["-std=c++20", "-shared", "-fPIC", f"-I{files / 'include'}", f"-L{files / 'lib'}"]
    links = [f"-Wl,-rpath,{files / 'lib'}", "-lc10", "-ltorch_cpu"]
    subprocess.run(["g++", *options, here / "cuda_stand_in.cpp", "-o", stand_in, *links], check=True)
    command, environment = (
        [sys.executable, here / "fake_cuda_updates.py", cases],
        os.environ | {"LD_PRELOAD": str(stand_in)},
    )
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert run.stdout.endswith("all on cuda\n"), run.stderr


@pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])
def test_double_precision_goes_all_the_way(robust):
    learner = tiny_learner(robust=robust, **EVERYTHING).double()
    losses, metrics = terms_of(learner, random_batch(robust=robust, dtype=torch.float64))
    backward(learner, losses)
    assert {value.dtype for value in metrics.values()} == {torch.float64}
    assert {parameter.grad.dtype for parameter in trained_parameters(learner)} == {torch.float64}
