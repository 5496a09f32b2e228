"""No action that is not finite reaches an environment."""

import numpy as np
import pytest
import torch

from ccwm.agents.actions import finite_action
from ccwm.errors import UserError


def test_an_action_becomes_float32():
    action = finite_action(torch.tensor([0.5, -1.0], dtype=torch.float64))
    assert action.dtype == np.float32
    assert action.tolist() == [0.5, -1.0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_one_that_is_not_finite_is_refused(bad):
    with pytest.raises(UserError, match="the agent's action is not finite"):
        finite_action(torch.tensor([0.5, bad]))
