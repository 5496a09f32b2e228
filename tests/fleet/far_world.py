"""A world of the project's own, which tells where it is played, and in which a process can be made to die."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

FOLDER = "FAR_WORLD"
"""Names a folder for the tales, where it is set."""


class Far(gymnasium.Env[np.ndarray, np.ndarray]):
    """A point that is pushed about; an episode's length is the seed's."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        super().reset(seed=seed)
        if FOLDER in os.environ:
            folder = Path(os.environ[FOLDER])
            (folder / f"played-{os.getppid()}-{os.getpid()}-{os.environ['OMP_NUM_THREADS']}").touch()
            if (folder / "die").exists():
                (folder / "die").unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        self.place = self.np_random.uniform(-1, 1, 2)
        return self.place.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.place = np.clip(self.place + 0.1 * action, -1, 1)
        return self.place.astype(np.float32), float(self.place[0]), self.np_random.random() < 0.1, False, {}
