"""A running mean by hand."""

import torch
from torch.testing import assert_close

from ccwm.agents import running
from ccwm.agents.running import MEMORY, RunningMean


def followed(*values):
    module = RunningMean()
    for value in values:
        module.follow(torch.tensor(value))
    return module


def test_it_is_a_plain_average_at_first():
    assert_close(followed().mean, torch.tensor(0.0))
    assert_close(followed(5.0).mean, torch.tensor(5.0))  # not drawn towards the 0 that it began with
    assert_close(followed(1.0, 2.0, 6.0).mean, torch.tensor(3.0))
    assert followed(1.0, 2.0, 6.0).num_updates == 3


def test_it_is_an_exponential_one_after_its_memory(monkeypatch):
    monkeypatch.setattr(running, "MEMORY", 2)
    # 4; (4 + 8) / 2 = 6; 6 + (2 − 6) / 2 = 4; 4 + (0 − 4) / 2 = 2
    assert_close(followed(4.0, 8.0, 2.0, 0.0).mean, torch.tensor(2.0))


def test_a_constant_stays_what_it_is():
    assert_close(followed(*[7.0] * (2 * MEMORY)).mean, torch.tensor(7.0))


def test_it_is_state_without_a_gradient():
    module, other = RunningMean().double(), RunningMean().double()
    module.follow(torch.tensor(3.0, requires_grad=True))  # cast to the module's own number format
    assert not module.mean.requires_grad
    assert module.mean.dtype == torch.float64
    other.load_state_dict(module.state_dict())
    for each in (module, other):
        each.follow(torch.tensor(9.0))
        assert_close(each.mean, torch.tensor(6.0, dtype=torch.float64))
