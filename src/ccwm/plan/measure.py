"""Some real steps and some real updates, timed at the settings' own sizes."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

import numpy as np
import torch

from ccwm.envs.factory import make_env
from ccwm.settings.agent import AgentConfig, Env
from ccwm.structs import Batch
from ccwm.training.device_check import one_device
from ccwm.training.devices import launch
from ccwm.training.kinds import build_module, build_updater, window_length
from ccwm.training.module import AgentModule

PATIENCE = 4.0
"""Seconds that a whole update may take to be measured whole; a slower one is extrapolated from parts of its batch."""


class TaskCost(NamedTuple):
    """One task: the sizes of its arrays, and the seconds of an agent's step and of a reset, rendering included."""

    observation_shape: tuple[int, ...]
    observation_bytes: int
    action_size: int
    step: float
    reset: float


class AgentCost(NamedTuple):
    """One variant: its size and what it costs."""

    parameters: int
    update: float
    act: float
    memory_mb: float
    parts: tuple[int, ...]
    """Windows of the batches that were really timed; just the whole batch where that was possible."""


def measure_start() -> float:
    """Seconds until a stage's process has imported what it needs."""
    modules = "ccwm.tracking.stage, ccwm.training.publish, ccwm.training.loop"
    command = [sys.executable, "-c", f"import {modules}"]
    return median_seconds(lambda: subprocess.run(command, check=True), 1)


def measure_task(task: str, config: Env, *, seconds: float = 0.5) -> TaskCost:
    """Random steps for this long, at least a few."""
    with closing(make_env(task, config)) as env:
        reset = median_seconds(lambda: env.reset(seed=0), 1)
        observation, _ = env.reset(seed=0)
        rng, taken, start = np.random.default_rng(0), 0, time.monotonic()
        while taken < 3 or time.monotonic() - start < seconds:
            _, _, terminated, truncated, _ = env.step(rng.uniform(-1, 1, env.action_size).astype(np.float32))
            taken += 1
            if terminated or truncated:
                env.reset(seed=taken)
        step = (time.monotonic() - start) / taken
    return TaskCost(observation.shape, observation.dtype.itemsize, env.action_size, step, reset)


def measure_agent(config: AgentConfig, task: TaskCost) -> AgentCost:
    """Updates of an untrained agent, as the training loop makes them, and its greedy acting."""
    module = make_module(config, task)
    module.counters.env_steps = config.train.env_steps  # so that nothing waits for a later step to be computed
    updater = build_updater(launch(one_device(config.trainer)), module)

    def timed(windows: int, updates: int) -> tuple[float, float]:
        """Median seconds of an update after the first, which warms up, and the process's peak memory in MB."""
        batch = random_batch(window_length(config), windows, task)

        def update() -> None:
            updater.step(batch)
            updater.averages()  # waits for the device

        update()
        return median_seconds(update, updates - 1), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    update, memory, parts = whole_update(timed, config.train.batch)
    policy = module.learner.policy()
    policy.reset(0)
    observation = random_batch(1, 1, task).observation[0, 0].numpy()
    act = median_seconds(lambda: policy.act(observation), 10)
    return AgentCost(count_weights(module), update, act, memory, parts)


def median_seconds(call: Callable[[], object], times: int) -> float:
    """Median seconds of a call."""
    return statistics.median(timeit.repeat(call, number=1, repeat=times))


def make_module(config: AgentConfig, task: TaskCost) -> AgentModule:
    """An untrained agent of a task."""
    return build_module(config, seed=0, observation_shape=task.observation_shape, actions=task.action_size)


def count_weights(module: AgentModule) -> int:
    """Weights of an agent."""
    return sum(weight.numel() for weight in module.learner.parameters())


def random_batch(length: int, windows: int, task: TaskCost) -> Batch:
    """Windows of noise; what they show does not change what an update costs."""
    shape = (length, windows)
    seen = torch.randint(0, 256, (*shape, *task.observation_shape), dtype=torch.uint8)
    position = torch.arange(length).unsqueeze(1).expand(shape)
    return Batch(
        observation=seen if task.observation_bytes == 1 else seen / 255,
        action=torch.rand(*shape, task.action_size) * 2 - 1,
        reward=torch.zeros(shape),
        is_first=position == 0,
        continues=torch.ones(shape),
        position=position,
        episode_length=torch.full(shape, length),
        irreversible=torch.zeros(shape, dtype=torch.bool),
    )


def whole_update(timed: Callable[[int, int], tuple[float, float]], whole: int) -> tuple[float, float, tuple[int, ...]]:
    """Seconds and peak memory of an update, and the batches behind them.

    t(B) = a + c·B: where the whole would take too long, a and c come from a sixteenth and an eighth of the batch.
    """
    small = max(1, whole // 16)
    seconds, memory = timed(small, 2)
    if small == whole or seconds * whole / small <= PATIENCE:
        updates = 2 + min(20, int(2.0 / max(seconds * whole / small, 1e-3)))
        return (*timed(whole, updates), (whole,))
    larger = max(small + 1, whole // 8)
    longer, more = timed(larger, 2)
    scale = (whole - larger) / (larger - small)
    return longer + max(longer - seconds, 0) * scale, more + max(more - memory, 0) * scale, (small, larger)
