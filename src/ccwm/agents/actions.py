"""An action on its way from a network to an environment."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from ccwm.errors import UserError


def finite_action(action: Tensor) -> np.ndarray:
    """The action as the environment takes it, or UserError where it is not finite.   [A] → float32 [A]."""
    found: np.ndarray = action.float().cpu().numpy()
    if not np.isfinite(found).all():
        hint = "its weights or the observation are not finite, or too large: train or load another agent"
        raise UserError("the agent's action is not finite", hint=hint)
    return found
