"""Errors of observations, pixels or states, measured where the decoder predicts them."""

from __future__ import annotations

import numpy as np
import torch

from ccwm.agents.world_model import WorldModel


def is_pixels(observation: np.ndarray) -> bool:
    """Whether observations are pictures; otherwise they are states."""
    return observation.dtype == np.uint8


def targets(model: WorldModel, observation: np.ndarray) -> np.ndarray:
    """Observations on the decoder's scale: [..., *observation] → float64 [..., n].

    Pixels lie within a range of 1; a state's components are squashed by symlog where the model squashes them.
    """
    target = model.encoder.target(torch.from_numpy(observation), torch.float64)
    return target.flatten(-3 if is_pixels(observation) else -1).numpy()


def squared_error(model: WorldModel, guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Mean squared error of pixels or components on the decoder's scale.   [..., *observation] each → [...]."""
    return np.asarray(((targets(model, guess) - targets(model, truth)) ** 2).mean(-1))
