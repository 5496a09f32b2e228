"""Some real steps and some real updates, timed at the settings' own sizes."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader

from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.envs.factory import make_env
from ccwm.episode import Episode
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.settings.agent import AgentConfig
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.structs import Batch
from ccwm.training.loop import build_module

PATIENCE = 4.0
"""Seconds that a whole update may take to be measured whole; a slower one is extrapolated from parts of its batch."""


class World(NamedTuple):
    """One task: its actions, and the seconds of an agent's step, the picture included."""

    actions: int
    step: float
    reset: float


class Agent(NamedTuple):
    """One variant: its size and what it costs."""

    parameters: int
    update: float
    act: float
    memory_mb: float
    parts: tuple[int, ...]
    """Windows of the batches that were really timed; just the whole batch where that was possible."""


def learning_of(settings: Settings, variant: str) -> AgentConfig:
    """What training reads of a variant."""
    resolved = resolve(settings, variant)
    return AgentConfig(*(getattr(resolved, section) for section in AgentConfig._fields))


def measure_start() -> float:
    """Seconds until a stage's process has imported what it needs."""
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", "import ccwm.tracking.stage, ccwm.training.publish, ccwm.studies.returns"], check=True
    )
    return time.monotonic() - began


def measure_world(task: str, settings: Settings, *, seconds: float = 0.5) -> tuple[World, Episode]:
    """Random steps for this long, at least a few; and what was seen, as the beginning of an episode."""
    env, render = settings.env, settings.render
    world = make_env(
        task, size=env.size, action_repeat=env.action_repeat, time_limit=env.time_limit, quality=render.quality
    )
    try:
        began = time.monotonic()
        image, _ = world.reset(seed=0)
        reset = time.monotonic() - began
        assert world.action_space.shape is not None
        rng, images, taken = np.random.default_rng(0), [image], 0
        began = time.monotonic()
        while taken < 3 or time.monotonic() - began < seconds:
            action = rng.uniform(-1, 1, world.action_space.shape).astype(np.float32)
            image, _, terminated, truncated, _ = world.step(action)
            taken += 1
            if len(images) < 8:
                images.append(image)
            if terminated or truncated:
                world.reset(seed=taken)
        step = (time.monotonic() - began) / taken
    finally:
        world.close()
    actions = world.action_space.shape[0]
    return World(actions, step, reset), _episode(images, actions, settings.train.length + 1)


def _episode(images: list[np.ndarray], actions: int, length: int) -> Episode:
    """An episode of this length that repeats the images; what it shows does not change what an update costs."""
    first = np.arange(length) == 0
    action = np.random.default_rng(0).uniform(-1, 1, (length, actions)).astype(np.float32)
    action[0] = 0
    return Episode(
        observation=np.stack([images[index % len(images)] for index in range(length)]),
        action=action,
        reward=np.zeros(length, np.float32),
        is_first=first,
        continues=np.ones(length, np.float32),
        irreversible=np.zeros(length, bool),
    )


def measure_agent(learning: AgentConfig, world: World, episode: Episode) -> Agent:
    """Updates of an untrained agent, timed as Lightning makes them, and its greedy acting."""
    torch.set_num_threads(learning.trainer.threads)
    module = build_module(learning, seed=0, actions=world.actions)
    module.counters.env_steps = learning.train.env_steps  # so that nothing waits for a later step to be computed
    whole = learning.train.batch
    with tempfile.TemporaryDirectory() as folder:
        store = EpisodeStore(Path(folder))
        store.append(episode)

        def timed(windows: int, updates: int) -> tuple[float, float]:
            sampler = WindowSampler(
                store, batch=windows, length=learning.train.length, seed=0, sampling=learning.replay.sampling
            )
            return _fit(learning, module, [sampler.draw(update) for update in range(updates)])

        update, memory, parts = _whole_update(timed, whole)
    return Agent(
        parameters=sum(weight.numel() for weight in module.learner.parameters()),
        update=update,
        act=_act_seconds(module, episode),
        memory_mb=memory,
        parts=parts,
    )


def _whole_update(timed: Callable[[int, int], tuple[float, float]], whole: int) -> tuple[float, float, tuple[int, ...]]:
    """Seconds and peak memory of an update, and the batches behind them.

    The first update of any size is a warm-up. t(B) = a + c·B: where the whole would take too long, a and c come from
    a sixteenth and an eighth of the batch.
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


class _Stopwatch(L.Callback):
    """The time of each update."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.began = 0.0

    def on_train_batch_start(self, *_: object) -> None:
        self.began = time.monotonic()

    def on_train_batch_end(self, *_: object) -> None:
        self.seconds.append(time.monotonic() - self.began)


def _fit(learning: AgentConfig, module: Any, batches: list[Batch]) -> tuple[float, float]:
    """Median seconds of an update after the first, and the process's peak memory in MB."""
    watch = _Stopwatch()
    trainer = L.Trainer(
        accelerator=learning.trainer.accelerator,
        precision=learning.trainer.precision,
        devices=1,
        max_epochs=1,
        callbacks=[watch],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(batches, batch_size=None))  # type: ignore[arg-type]
    return float(np.median(watch.seconds[1:])), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _act_seconds(module: Any, episode: Episode, steps: int = 10) -> float:
    policy = RecurrentPolicy(module.learner.world_model, module.learner.actor_critic.actor)
    policy.reset([0])
    policy.act(episode.observation[:1])
    began = time.monotonic()
    for _ in range(steps):
        policy.act(episode.observation[:1])
    return (time.monotonic() - began) / steps
