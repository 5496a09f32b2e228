"""Small valid episodes whose every value tells which step of which episode it is."""

from __future__ import annotations

import numpy as np

from ccwm.structs import Episode


def synthetic_episode(number: int, steps: int, *, size: int = 4, actions: int = 2, terminated: bool = False) -> Episode:
    """Episode ``number`` of L steps; reward[t] = 100·number + t, and the rest is noise of its own seed."""
    random = np.random.default_rng(number)
    action = random.uniform(-1, 1, (steps, actions)).astype(np.float32)
    action[0] = 0
    continues = np.ones(steps, np.float32)
    continues[-1] = 0 if terminated else 1
    return Episode(
        image=random.integers(0, 256, (steps, size, size, 3), dtype=np.uint8),
        action=action,
        reward=100 * number + np.arange(steps, dtype=np.float32),
        is_first=np.arange(steps) == 0,
        continues=continues,
        irreversible=random.random(steps) < 0.5,
    )
