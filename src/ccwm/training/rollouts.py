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
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from ccwm.agents.policy import Policy
from ccwm.envs.env import TaskEnv
from ccwm.envs.factory import make_env
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.settings.agent import Env

RESTARTS = 2
"""How often workers are started again after one of them has died."""
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


class WorkerDied(Exception):
    """A worker process ended in the middle of its work; the message says how."""


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
    generator is closed. If one dies, all are started again and the episodes that were not yielded are replayed.
    """
    workers = min(workers, len(seeds))
    if workers <= 1:
        with contextlib.closing(make_env(task, config)) as env:
            yield from (play_episode(env, make_policy(env.action_size), seed) for seed in seeds)
        return
    done = restarts = 0
    while done < len(seeds):
        try:
            for rollout in _play_in_workers(task, config, make_policy, seeds[done:], workers):
                yield rollout
                done += 1
        except WorkerDied as death:
            if restarts == RESTARTS:
                raise UserError(
                    f"a worker process of {task} died {restarts + 1} times, the last time {death}",
                    hint="lower collect.workers if memory is short; 1 plays in the stage's own process",
                ) from None
            restarts += 1
            log.warning("a worker process of %s died %s: restart %d of %d", task, death, restarts, RESTARTS)


def _play_in_workers(
    task: str, config: Env, make_policy: Callable[[int], Policy], seeds: Sequence[int], workers: int
) -> Generator[Rollout]:
    """Yield the episodes of all seeds, or raise WorkerDied."""
    # Spawned, because a fork is unsafe beside the threads of MLflow and GL.
    context = multiprocessing.get_context("spawn")
    # Nothing is ever sent. The writer exists in this process alone: when it is closed, by us or by our death, the
    # workers read an end of file and exit.
    reader, writer = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(workers, context, _start_worker, (reader,))
    others = set(multiprocessing.active_children())
    processes = others
    try:
        with _inherited_by_workers():
            play = functools.partial(_play_in_worker, task, config, make_policy)
            waiting: deque[Future[Rollout]] = deque(executor.submit(play, seed) for seed in seeds)
        processes = set(multiprocessing.active_children()) - others
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        executor.shutdown()  # waits until every process has its exit code
        raise WorkerDied(_how_ended({process.exitcode for process in processes})) from None
    finally:
        writer.close()
        executor.shutdown(cancel_futures=True)
        reader.close()


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
