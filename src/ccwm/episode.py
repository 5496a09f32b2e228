"""An episode, as it is played and stored; without torch, so that workers and the command line start fast."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Episode(NamedTuple):
    """One whole episode of L steps, reset included."""

    observation: np.ndarray  # [L, *observation]: uint8 [size, size, 3] pixels, or a float32 vector
    action: np.ndarray  # [L, A] float32; action[t] led to observation[t]
    reward: np.ndarray  # [L] float32
    is_first: np.ndarray  # [L] bool; true only at 0
    continues: np.ndarray  # [L] float32; 0 only where the episode terminated
    irreversible: np.ndarray  # [L] bool; the true label of the transition into t, False where the task has none
