"""Environments that test rollouts: what they see, and how they fail, is plain."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


class Counting(gymnasium.Env[np.ndarray, np.ndarray]):
    """Observation and reward tell the action that led to them; two frames a step."""

    observation_space = gymnasium.spaces.Box(0, 255, (4, 4, 3), np.uint8)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, steps: int, *, terminates: bool = False) -> None:
        self.steps, self.terminates, self.taken = steps, terminates, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        self.taken = 0
        return np.zeros((4, 4, 3), np.uint8), {"frames": 0, "irreversible": False}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.taken += 1
        assert self.taken <= self.steps, "stepped after its end"
        last = self.taken == self.steps
        info = {"frames": 2, "irreversible": last, "success": last}
        image = np.full((4, 4, 3), round(100 * action[0]), np.uint8)
        return image, float(10 * action[0]), last and self.terminates, last and not self.terminates, info


class Seeded(gymnasium.Env[np.ndarray, np.ndarray]):
    """An episode of its seed alone; subclasses do something at the first step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        super().reset(seed=seed)
        self.seed = seed
        return np.zeros(1, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.act()
        return np.zeros(1, np.float32), float(action[0] + self.np_random.random()), False, False, {}

    def render(self) -> np.ndarray:
        return np.full((32, 32, 3), self.np_random.integers(256), np.uint8)

    def act(self) -> None:
        """Nothing."""


class DiesOnce(Seeded):
    """Ends its process with SIGKILL at seed 4, once: a file says that it was so."""

    def act(self) -> None:
        mark = Path("died")
        if self.seed == 4 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class DiesAlways(Seeded):
    """Ends its process with exit code 7, and counts how often."""

    def act(self) -> None:
        with Path("died").open("a") as file:
            file.write("x")
        os._exit(7)


class TwoArguments(Exception):
    """An exception that cannot be pickled and read back."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} is not {second}")


class Raises(Seeded):
    """Raises an error of its own, and counts how often."""

    def act(self) -> None:
        with Path("raised").open("a") as file:
            file.write("x")
        raise TwoArguments(1, 2)


class Tells(Seeded):
    """Raises what its process inherited."""

    def act(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threads = [os.environ[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LP_NUM_THREADS")]
        raise ValueError(f"threads {threads}, {threading.active_count()} alive, Ctrl-C survived")


class Slow(Seeded):
    """Steps that take for ever; the process's id is in a file's name."""

    def act(self) -> None:
        Path(f"pid-{os.getpid()}").touch()
        time.sleep(3600)


class SlowAt4(Slow):
    """Slow at seed 4 alone."""

    def act(self) -> None:
        if self.seed == 4:
            super().act()


class Fading(gymnasium.Env[np.ndarray, np.ndarray]):
    """An episode whose length is the seed's; whoever finds a file called `die` deletes it and dies of SIGKILL."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1, 2)
        return self.place.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        with contextlib.suppress(FileNotFoundError):
            Path("die").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        self.place = np.clip(self.place + 0.1 * action, -1, 1)
        return self.place.astype(np.float32), float(self.place[0]), self.np_random.random() < 0.1, False, {}
