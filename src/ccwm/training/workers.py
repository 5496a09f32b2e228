"""Environments in processes of their own, which draw at the same time."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import gymnasium
import numpy as np

from ccwm.envs.factory import make_env
from ccwm.envs.vector import Answer, LaneEnvs, LocalLane
from ccwm.errors import UserError
from ccwm.training import worker

RESTARTS = 1
"""How often a worker that died is started again."""
SECONDS = 10.0
"""How long a worker may take to end."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LP_NUM_THREADS"), "1")
"""Each worker computes and draws (Mesa's LP_NUM_THREADS) on one thread: the workers themselves fill the cores."""
log = logging.getLogger(__name__)


class WorkerDied(UserError, RuntimeError):
    """An environment's process has died more often than it is started again."""


class _Gone(Exception):
    """The process ended; the message says how."""


def make_envs(task: str, *, workers: int, **settings: Any) -> LaneEnvs:
    """``workers`` environments of ``make_env(task, **settings)``: one lives in this process, several in their own."""
    if workers == 1:
        return LaneEnvs([LocalLane(make_env(task, **settings))])
    lanes: list[WorkerLane] = []
    try:
        lanes += (WorkerLane(number, {"task": task, **settings}) for number in range(workers))
        return LaneEnvs(lanes)
    except BaseException:
        for lane in lanes:
            lane.close()
        raise


class WorkerLane:
    """An environment in a process of its own.

    If the process dies, it is started once more and the episode begun again from its seed, with the actions that were
    taken in it so far; whoever steps the environment sees no difference. If it dies again, WorkerDied tells why.
    """

    def __init__(self, number: int, settings: Mapping[str, Any]) -> None:
        self.number, self._settings = number, settings
        self._shape = (settings["size"], settings["size"], 3)
        self._restarts = RESTARTS
        self._episode: list[dict[str, Any]] = []  # all that was asked since the last reset
        self._start()

    @property
    def pid(self) -> int:
        """The process that the environment lives in now."""
        return self._process.pid

    @property
    def observation_space(self) -> gymnasium.spaces.Space[Any]:
        """As the environment's own."""
        return gymnasium.spaces.Box(0, 255, self._shape, np.uint8)

    @property
    def action_space(self) -> gymnasium.spaces.Space[Any]:
        """As the environment's own; waits until the environment stands."""
        if self._actions is None:
            try:
                self._greet()
            except _Gone as gone:
                self._begin_again(gone)
        assert self._actions is not None
        return gymnasium.spaces.Box(-1.0, 1.0, self._actions, np.float32)

    def ask_reset(self, seed: int) -> None:
        """Have an episode begun."""
        self._episode = [{"reset": seed}]
        self._tell(self._episode[-1])

    def ask_step(self, action: np.ndarray) -> None:
        """Have an action [A] taken."""
        self._episode.append({"step": action.tolist()})
        self._tell(self._episode[-1])

    def wait(self) -> Answer:
        """The answer to what was asked last."""
        try:
            return self._receive()
        except _Gone as gone:
            answer = self._begin_again(gone)
            assert answer is not None, "nothing was asked"
            return answer

    def close(self) -> None:
        """End the process."""
        self._link.close()
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        ours, theirs = Pipe()
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-P", "-m", worker.__name__, json.dumps(self._settings), str(theirs.fileno())]
        with theirs:
            # A group of its own, so that Ctrl-C reaches only the parent, which then ends the worker in good order.
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], process_group=0)
        self._link: Connection[Any, Any] = ours
        self._actions: tuple[int, ...] | None = None

    def _begin_again(self, gone: _Gone) -> Answer | None:
        """Start the process anew, ask all that was asked since the last reset, and give the last answer."""
        while True:
            self.close()
            if not self._restarts:
                raise WorkerDied(f"worker {self.number} of {self._settings['task']} died again: {gone}") from None
            self._restarts -= 1
            log.warning("worker %d died (%s): started again, with its episode from the beginning", self.number, gone)
            self._start()
            answer = None
            try:
                self._greet()
                for asked in self._episode:
                    self._tell(asked)
                    answer = self._receive()
            except _Gone as again:
                gone = again
            else:
                return answer

    def _tell(self, asked: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # it is dead, which `wait` will see
            self._link.send_bytes(json.dumps(asked).encode())

    def _greet(self) -> None:
        self._actions = tuple(self._hear()["actions"])

    def _receive(self) -> Answer:
        if self._actions is None:
            self._greet()
        answer = self._hear()
        return Answer(np.frombuffer(self._bytes(), np.uint8).reshape(self._shape), **answer)

    def _hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(self._bytes())
        if "error" in heard:
            raise _Gone(heard["error"])
        return heard

    def _bytes(self) -> bytes:
        try:
            return self._link.recv_bytes()
        except (EOFError, OSError):
            try:
                code = self._process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                code = None
            raise _Gone(_ended(code)) from None


def _ended(code: int | None) -> str:
    if code is None:
        return "it stopped answering"
    return f"it was ended by signal {-code}" if code < 0 else f"it exited with code {code}"
