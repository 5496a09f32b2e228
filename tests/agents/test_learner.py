"""What every kind of agent shares."""

import pytest
import torch
from tiny_learner import TINY, config_of, tiny_learner

from ccwm.agents.learner import Learner, named, total


def test_a_kind_must_act_and_need_not_retrace():
    learner = Learner(config_of(TINY), observation_shape=(4,), actions=2)
    with pytest.raises(NotImplementedError):
        learner.policy()
    assert learner.retrace_skill(None) == {}


def test_its_dtype_is_that_of_its_weights():
    learner = tiny_learner()
    assert learner.dtype == torch.float32
    assert learner.double().dtype == torch.float64


def test_names_are_prefixed_and_losses_added():
    one, two = torch.tensor(1.5), torch.tensor(2.0)
    assert named("model", {"kl": one}) == {"model/kl": one}
    assert total({"a": one, "b": two}) == 3.5  # 1.5 + 2
