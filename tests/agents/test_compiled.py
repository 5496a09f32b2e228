"""An update that `torch.compile` has traced gives the numbers of the eager one."""

from __future__ import annotations

import copy

import pytest
import torch
from tiny_learner import DRAWN_HEADS, backward, noise_of, random_batch, terms_of, tiny_learner, whole_step
from torch._functorch import config as functorch

from ccwm.training.module import CCWM

CASES = {
    "dreamer": {"retrace": {"weight": 0.0}},
    "ccwm": {
        "model": {"continues": True, "free_nats": 1.0},
        "truncation": {"mode": "adaptive", "window": 2},
    },
    "robust": {"robust": True, "retrace": {"loss": "kl", "length": 2}, **DRAWN_HEADS},
}


@pytest.fixture(autouse=True)
def traced_afresh():
    torch._dynamo.reset()
    # Three losses go back through one graph, so that no buffer of it may be given away by the first.
    with functorch.patch(donated_buffer=False):
        yield


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("ccwm", "eager"),  # traces the update
        *(pytest.param(name, "aot_eager", marks=pytest.mark.slow) for name in CASES),  # differentiates it, too
    ],
)
def test_losses_and_gradients_are_those_of_the_eager_update(name, backend, monkeypatch):
    """`aot_eager` traces and differentiates as every backend does, without minutes of a C++ compiler."""
    eager = tiny_learner(**CASES[name], actor_critic={"horizon": 2})
    batch = random_batch(3, 2, robust=CASES[name].get("robust", False))  # every step of a loop is traced
    traced = copy.deepcopy(eager)
    expected = terms_of(eager, batch)
    backward(eager, expected.losses)
    noise, module = noise_of(traced, batch), CCWM(traced, seed=0)
    monkeypatch.setattr("ccwm.training.module.draw_noise", lambda *inputs: noise)  # it draws on the host
    terms = torch.compile(lambda batch: whole_step(module, batch), backend=backend)(batch)
    backward(traced, terms.losses)
    assert terms.metrics.keys() == expected.metrics.keys()
    torch.testing.assert_close(terms.metrics, expected.metrics)
    gradients = [{n: p.grad for n, p in learner.named_parameters()} for learner in (traced, eager)]
    torch.testing.assert_close(*gradients)
