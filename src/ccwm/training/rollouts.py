"""Playing whole episodes, in this process or in worker processes; an episode is a function of its seed."""

from __future__ import annotations

import contextlib
import functools
import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np

from ccwm.agents.policy import Policy
from ccwm.envs.env import TaskEnv
from ccwm.envs.factory import make_env
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.settings.agent import Env

RESTARTS = 2
"""How often workers are started again after one of them has died, before an episode comes back."""
PERIOD = 0.1
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LP_NUM_THREADS"), "1")
"""A worker computes and renders (Mesa's LP_NUM_THREADS) on one thread: the workers themselves fill the cores."""
log = logging.getLogger(__name__)


class Rollout(NamedTuple):
    """An episode, the simulator frames that it took, and whether its goal was reached (None where there is none)."""

    episode: Episode
    frames: int
    success: bool | None

    @property
    def total(self) -> float:
        """The episode's return."""
        return float(self.episode.reward.sum(dtype=np.float64))


def play_episode(
    env: gymnasium.Env[np.ndarray, np.ndarray],
    policy: Policy,
    seed: int,
    *,
    between: Callable[[], None] = lambda: None,
) -> Rollout:
    """One whole episode, a function of the environment, the policy and the seed.

    ``between`` is called before every step; what it raises abandons the episode.
    """
    policy.reset(seed)
    observation, _ = env.reset(seed=seed)
    assert env.action_space.shape is not None
    steps: list[tuple[Any, ...]] = [(observation, np.zeros(env.action_space.shape), 0.0, True, 1.0, False)]
    frames, success, over = 0, None, False
    while not over:
        between()
        action = policy.act(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        steps.append((observation, action, reward, False, not terminated, info["irreversible"]))
        frames, success, over = frames + info["frames"], info.get("success"), terminated or truncated
    observations, actions, rewards, is_first, continues, irreversible = zip(*steps, strict=True)
    episode = Episode(
        observation=np.stack(observations),
        action=np.stack(actions).astype(np.float32),
        reward=np.array(rewards, np.float32),
        is_first=np.array(is_first, bool),
        continues=np.array(continues, np.float32),
        irreversible=np.array(irreversible, bool),
    )
    return Rollout(episode, frames, success)


def play_episodes(
    task: str, config: Env, make_policy: Callable[[int], Policy], seeds: Sequence[int], *, workers: int = 1
) -> Generator[Rollout]:
    """Yield one episode for each seed, in their order, played by up to ``workers`` processes; they change no byte.

    ``make_policy`` gets the action size and must be importable by its name, as a class is. Workers end when the
    generator is closed.
    """
    workers = min(workers, len(seeds))
    if workers <= 1:
        with contextlib.closing(make_env(task, config)) as env:
            yield from (play_episode(env, make_policy(env.action_size), seed) for seed in seeds)
        return
    hint = "lower collect.workers if memory is short; 1 plays in the stage's own process"
    with contextlib.closing(EpisodeWorkers(task, config, workers, hint=hint)) as pool:
        waiting = deque([pool.submit(make_policy, seed) for seed in seeds])
        while waiting:  # an episode that was yielded takes no more memory
            yield pool.result(waiting.popleft())


@dataclass(frozen=True)
class FromFiles:
    """Makes a policy of what a file or a folder holds; ``load`` gets its path and the action size."""

    path: Path
    load: Callable[[Path, int], Policy]

    def __call__(self, actions: int) -> Policy:
        """The policy for actions of this size."""
        return self.load(self.path, actions)


class Pending:
    """An episode that workers play."""

    def __init__(self) -> None:
        self.future: Future[Rollout] = Future()

    @property
    def frames(self) -> int | None:
        """The simulator frames that it took; None as long as it is played."""
        ended = self.future.done() and self.future.exception() is None
        return self.future.result().frames if ended else None

    @property
    def is_lost(self) -> bool:
        """Whether its worker, or another one, died before it was over."""
        return self.future.done() and isinstance(self.future.exception(), BrokenProcessPool)


class Workers(Protocol):
    """Play episodes, several at once, while their owner does something else."""

    def submit(self, make_policy: FromFiles, seed: int) -> Pending:
        """Have an episode played."""

    def result(self, pending: Pending, *, between: Callable[[], None] = lambda: None) -> Rollout:
        """Wait for an episode; ``between`` is called all the while, and what it raises ends the wait."""

    def replace_dead(self) -> None:
        """Have played again what was lost with a worker."""

    def close(self) -> None:
        """End the workers, whatever they play."""


class StartWorkers(Protocol):
    """Starts workers for a task, ``workers`` of them; ``hint`` says what to do about workers that keep dying."""

    def __call__(self, task: str, config: Env, workers: int, *, hint: str) -> Workers:
        """Start them."""


class EpisodeWorkers:
    """Processes that play episodes, up to ``workers`` at once, while their owner does something else.

    If one dies, all are started again and the episodes that were not over are replayed.
    """

    def __init__(self, task: str, config: Env, workers: int, *, hint: str) -> None:
        self.task, self.config, self.workers, self.hint = task, config, workers, hint
        self._pending: dict[Pending, Callable[[], Rollout]] = {}
        self._deaths = 0
        self._start()

    def submit(self, make_policy: Callable[[int], Policy], seed: int) -> Pending:
        """Have an episode played; see ``play_episodes`` for the policy."""
        pending = Pending()
        self._pending[pending] = functools.partial(_play_in_worker, self.task, self.config, make_policy, seed)
        self._send(pending)
        return pending

    def result(self, pending: Pending, *, between: Callable[[], None] = lambda: None) -> Rollout:
        """Wait for an episode; ``between`` is called all the while, and what it raises ends the wait."""
        while not wait([pending.future], timeout=PERIOD).done or pending.is_lost:
            between()
            self.replace_dead()
        del self._pending[pending]
        self._deaths = 0
        return pending.future.result()

    def replace_dead(self) -> None:
        """Start all workers again if one has died."""
        if not any(pending.is_lost for pending in self._pending):
            return
        self._executor.shutdown()  # waits until every process has its exit code
        death = _how_ended({process.exitcode for process in self._processes})
        self.close()
        self._deaths += 1
        if self._deaths > RESTARTS:
            message = f"a worker process of {self.task} died {self._deaths} times, the last time {death}"
            raise UserError(message, hint=self.hint)
        log.warning("a worker process of %s died %s: restart %d of %d", self.task, death, self._deaths, RESTARTS)
        self._start()
        for pending in self._pending:
            if pending.is_lost:
                self._send(pending)

    def close(self) -> None:
        """End the workers, whatever they play."""
        self._writer.close()
        self._executor.shutdown(cancel_futures=True)
        self._reader.close()

    def _start(self) -> None:
        # Spawned, because a fork is unsafe beside the threads of MLflow and GL.
        context = multiprocessing.get_context("spawn")
        # Nothing is ever sent. The writer exists in this process alone: when it is closed, by us or by our death, the
        # workers read an end of file and exit.
        self._reader, self._writer = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(self.workers, context, _start_worker, (self._reader,))
        self._processes: set[multiprocessing.process.BaseProcess] = set()

    def _send(self, pending: Pending) -> None:
        others = set(multiprocessing.active_children())
        try:
            with _inherited_by_workers():
                pending.future = self._executor.submit(self._pending[pending])
        except BrokenProcessPool as error:  # noticed only now; ``replace_dead`` sends it again
            pending.future = Future()
            pending.future.set_exception(error)
        self._processes |= set(multiprocessing.active_children()) - others


def _how_ended(codes: set[int | None]) -> str:
    """The executor ends the other workers with SIGTERM, so any other exit code is the one that tells."""
    code = next((code for code in codes if code not in (None, -signal.SIGTERM)), -signal.SIGTERM)
    return f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


@contextlib.contextmanager
def _inherited_by_workers() -> Iterator[None]:
    """Processes started within have one thread from their first import on, and leave Ctrl-C to their parent."""
    before = {name: os.environ[name] for name in ONE_THREAD if name in os.environ}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name in ONE_THREAD:
            del os.environ[name]
        os.environ.update(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start_worker(parent: Connection[Any, Any]) -> None:
    def end_with_parent() -> None:
        with contextlib.suppress(EOFError):
            parent.recv_bytes()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@functools.cache
def _worker_env(task: str, config: Env) -> TaskEnv:
    return make_env(task, config)


def _play_in_worker(task: str, config: Env, make_policy: Callable[[int], Policy], seed: int) -> Rollout:
    try:
        env = _worker_env(task, config)
        return play_episode(env, make_policy(env.action_size), seed)
    except UserError:
        raise
    except Exception as error:  # an environment's exception may not be picklable
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
