"""An update that `torch.compile` has traced gives the numbers of the eager one."""

from __future__ import annotations

import copy

import pytest
import torch
from tiny_learner import backward, losses_of, random_batch, tiny_learner
from torch._functorch import config as functorch

CASES = {
    "dreamer": {"retrace": {"weight": 0.0}},
    "ccwm": {
        "model": {"continues": True, "free_nats": 1.0},
        "truncation": {"mode": "adaptive", "window": 2, "start": 0},
    },
}


@pytest.fixture(autouse=True)
def traced_afresh():
    torch._dynamo.reset()
    # Three losses go back through one graph, so that no buffer of it may be given away by the first.
    with functorch.patch(donated_buffer=False):
        yield


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients_are_those_of_the_eager_update(name):
    """`aot_eager` traces and differentiates as every backend does, without minutes of a C++ compiler."""
    eager, batch = tiny_learner(**CASES[name]), random_batch()
    traced = copy.deepcopy(eager)
    expected = losses_of(eager, batch)
    backward(eager, expected)
    compiled = torch.compile(traced, backend="aot_eager")
    losses = compiled(batch, traced.noise(0, 0, batch), 0)
    backward(traced, losses)
    assert losses.terms.keys() == expected.terms.keys()
    torch.testing.assert_close(losses.terms, expected.terms)
    gradients = [{n: p.grad for n, p in learner.named_parameters()} for learner in (traced, eager)]
    torch.testing.assert_close(*gradients)
