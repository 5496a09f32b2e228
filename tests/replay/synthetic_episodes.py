"""Small valid episodes whose every value tells which step of which episode it is."""

from __future__ import annotations

import numpy as np

from ccwm.episode import Episode

PIXELS, VECTOR = (4, 4, 3), (5,)


def synthetic_episode(
    number: int,
    steps: int,
    *,
    shape: tuple[int, ...] = PIXELS,
    actions: int = 2,
    terminated: bool = False,
) -> Episode:
    """Episode ``number`` of L steps; reward[t] = 100·number + t, and the rest is noise of its own seed.

    A shape of several axes gives uint8 pixels, a flat one a float32 vector.
    """
    rng = np.random.default_rng(number)
    action = rng.uniform(-1, 1, (steps, actions)).astype(np.float32)
    action[0] = 0
    continues = np.ones(steps, np.float32)
    continues[-1] = 0 if terminated else 1
    pixels = rng.integers(0, 256, (steps, *shape), dtype=np.uint8)
    return Episode(
        observation=pixels if len(shape) > 1 else rng.standard_normal((steps, *shape), dtype=np.float32),
        action=action,
        reward=100 * number + np.arange(steps, dtype=np.float32),
        is_first=np.arange(steps) == 0,
        continues=continues,
        irreversible=rng.random(steps) < 0.5,
    )
