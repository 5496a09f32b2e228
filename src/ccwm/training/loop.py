"""Training one agent from its first data to its last update, in a work directory from which it can resume.

All state lives in the counters, the history and the replay, each whole between two updates; so a run can stop at any
update and resume exactly there.
"""

from __future__ import annotations

import functools
import resource
import time
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import lightning as L
import numpy as np
import torch
from torch import distributed

from ccwm.cells import Cell
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.seeds import episode_seed
from ccwm.settings.agent import AgentConfig, Train
from ccwm.training.acting import Acting, ActingAhead, ActingHere, goal_of_cycle
from ccwm.training.checkpoints import Checkpoints
from ccwm.training.devices import end_with_launcher, launch, lost_rank
from ccwm.training.finite import NotFinite
from ccwm.training.history import History, Log
from ccwm.training.kinds import build_module, build_sampler, build_updater
from ccwm.training.memory import keep_freed_memory
from ccwm.training.module import AgentModule
from ccwm.training.progress import TrainingProgress
from ccwm.training.rollouts import EpisodeWorkers, StartWorkers
from ccwm.training.signals import Interrupted, StopRequest, deferred_signals
from ccwm.training.update import Updater


class Cost(NamedTuple):
    """What the last session of a run took; it differs from run to run and is no result."""

    seconds: float
    env_steps_per_second: float
    updates_per_second: float
    peak_memory_mb: float
    device: str

    def numbers(self) -> dict[str, float]:
        """The cost's numbers by name, as metrics."""
        return {f"cost/{name}": value for name, value in self._asdict().items() if name != "device"}


class Trained(NamedTuple):
    """A finished run."""

    module: AgentModule
    history: History
    cost: Cost
    best: dict[str, Any]
    """The module's ``state_dict`` at the highest point of the learning curve."""


def number_of_cycles(settings: Train, first_env_steps: int) -> int:
    """One cycle that only learns, then enough cycles to spend the rest of the budget."""
    owed = max(settings.env_steps - first_env_steps, 0)
    return 1 + -(-owed // settings.update_every)


def updates_after(settings: Train, cycles: int) -> int:
    """The updates that are made once this many cycles are over."""
    return (settings.pretrain or settings.updates) + (cycles - 1) * settings.updates if cycles else 0


@lost_rank()
def train(
    config: AgentConfig,
    cell: Cell,
    *,
    data: Path,
    work: Path,
    log: Log,
    label: str,
    start_workers: StartWorkers = EpisodeWorkers,
) -> Trained:
    """Train until the budget of environment steps is spent, from the work directory's last checkpoint where it has one.

    ``start_workers`` starts the actors of ``train.actors``.

    The caller holds the work directory (``work_directory.exclusive``) for longer: until the results are published.
    """
    keep_freed_memory()
    assert cell.seed is not None
    checkpoints = Checkpoints(work / "checkpoints", settings={**cell.tags, **config.flat()})
    state = checkpoints.latest()
    store = open_replay(config, work)
    first = EpisodeStore(data, read_only=True)
    first_env_steps = (first.steps - len(first)) * config.env.action_repeat  # a reset takes no frames
    if state is None:
        store.truncate(min(len(store), len(first)))
        store.copy_from(data)
    else:  # now, because the other ranks read the store as soon as they are launched
        store.truncate(state["updater"]["module"]["_extra_state"]["episodes"])
    history, fabric = History(log=log), launch(config.trainer)
    updater = _make_updater(config, fabric, store, seed=cell.seed)
    counters = updater.module.counters
    if state is None:
        counters.episodes, counters.env_steps = len(store), first_env_steps
    else:
        updater.load_state_dict(state["updater"])
        history.load_state_dict(state["history"])
    cycles = number_of_cycles(config.train, first_env_steps)
    progress = TrainingProgress(
        history,
        counters,
        env_steps=config.train.env_steps,
        updates=updates_after(config.train, cycles),
        label=label,
    )
    with (
        deferred_signals() as stop,
        closing(
            _acting(config, cell.task, updater.module, work / "acting", first_env_steps, start_workers, stop)
        ) as acting,
        progress,
    ):
        if state is not None:
            acting.load_state_dict(state["acting"])
        loop = MainLoop(
            config, updater, store, cell.seed, stop, acting, history, checkpoints, progress, first_env_steps
        )
        cost = _timed(loop)
        loop.evaluate(final=True)
        loop.save()
    best = checkpoints.best()
    assert best is not None, "the first evaluation saves one"
    return Trained(updater.module, history, cost, best["module"])


@lost_rank()
def follow(config: AgentConfig, cell: Cell, *, work: Path) -> None:
    """What the other ranks do: join the main process, and compute their rows of every batch; they write nothing."""
    assert cell.seed is not None
    end_with_launcher()
    with deferred_signals() as stop:
        fabric = launch(config.trainer)  # the main process has made replay and checkpoint ready before it launches
        store = open_replay(config, work, read_only=True)
        updater = _make_updater(config, fabric, store, seed=cell.seed)
        state = Checkpoints(work / "checkpoints").latest()
        if state is not None:
            updater.load_state_dict(state["updater"])
        # The main process reports both; an exit code other than 0 would have Fabric kill it before it can.
        with suppress(NotFinite, Interrupted):
            Loop(config, updater, store, cell.seed, stop).run()
        stop.signum = None


@dataclass
class Loop:
    """The loop that all ranks run in step: act, then update; only the main process acts."""

    config: AgentConfig
    updater: Updater
    store: EpisodeStore
    seed: int
    stop: StopRequest

    @functools.cached_property
    def sampler(self) -> WindowSampler:
        """This rank's windows of every batch."""
        return build_sampler(self.config, self.store, seed=self.seed)

    def run(self) -> None:
        """Make cycles until the main process says that the last one is done."""
        counters, settings = self.updater.module.counters, self.config.train
        while self.act():
            while counters.updates < updates_after(settings, counters.cycle + 1):
                self.updater.step(self.sampler.draw(counters.updates, episodes=counters.episodes))
                self.after_update()
            counters.cycle += 1
            self.after_cycle()

    def act(self) -> bool:
        """Wait until the main process has acted, take over its counters; false where it has finished."""
        counters = self.updater.module.counters
        more, counters.env_steps, counters.episodes = _broadcast(self.updater.fabric, [0, 0, 0])
        self.store.refresh()
        return bool(more)

    def after_update(self) -> None:
        """Average the logged numbers when they are due, and stop when the main process received a signal."""
        if self.updater.module.counters.updates % self.config.train.log_every == 0:
            self.log(self.updater.averages())
        signum = self.stop.signum  # read once: a signal from here on waits for the next update
        (signum,) = _broadcast(self.updater.fabric, [signum or 0])
        if signum:
            self.after_cycle()
            raise Interrupted(signum)

    def log(self, averages: dict[str, float]) -> None:
        """Nothing: the main process reports."""

    def after_cycle(self) -> None:
        """Nothing: the main process saves."""


@dataclass
class MainLoop(Loop):
    """What the main process does besides: evaluate where it is due, act, report and save."""

    acting: Acting
    history: History
    checkpoints: Checkpoints
    progress: TrainingProgress
    first_env_steps: int

    def act(self) -> bool:
        """Evaluate if due, then play whole episodes until this cycle's environment steps are reached."""
        counters, settings = self.updater.module.counters, self.config.train
        more = counters.cycle < number_of_cycles(settings, self.first_env_steps)
        try:
            if more:
                # A run that was interrupted within a cycle must not evaluate the weights that it has there.
                if counters.evaluated == counters.cycle:
                    self.evaluate()
                    counters.evaluated += 1
                self._play()
                self.acting.begin_updates()
        except Interrupted:
            self.save()
            _broadcast(self.updater.fabric, [0, 0, 0])  # the other ranks need not wait
            raise
        _broadcast(self.updater.fabric, [int(more), counters.env_steps, counters.episodes])
        return more

    def after_update(self) -> None:
        """Show the progress, too."""
        self.progress.show()
        super().after_update()
        self.acting.after_update()

    def log(self, averages: dict[str, float]) -> None:
        """Report the losses."""
        counters = self.updater.module.counters
        self.history.add_losses(counters.env_steps, counters.updates, averages)

    def after_cycle(self) -> None:
        """Save."""
        self.save()

    def save(self) -> None:
        """Write a checkpoint of this very update."""
        self.checkpoints.save(
            {
                "updater": self.updater.state_dict(),
                "history": self.history.state_dict(),
                "acting": self.acting.state_dict(),
            }
        )

    def evaluate(self, *, final: bool = False) -> None:
        """A point of the learning curve, where environment steps have crossed a multiple or the weights are final."""
        counters, settings = self.updater.module.counters, self.config.train
        if self.history.curve:
            last, every = self.history.curve[-1], settings.evaluate_every
            due = counters.env_steps // every > last["env_steps"] // every
            if not due and not (final and counters.updates > last["updates"]):
                return
        seeds = [episode_seed("curve", self.seed, index) for index in range(settings.evaluate_episodes)]
        played = self.acting.evaluate(seeds)
        returns = [each.total for each in played]
        successes = [each.success for each in played if each.success is not None]
        if np.mean(returns) > max((row["return_mean"] for row in self.history.curve), default=-np.inf):
            # Before the point is recorded: a run that is stopped in between measures it again.
            self.checkpoints.save_best({"module": self.updater.module.state_dict()})
        self.history.add_evaluation(counters.env_steps, counters.updates, returns, successes, self._retrace_skill())

    def _retrace_skill(self) -> dict[str, float]:
        """Whether the model retraces at all, on a batch of the update that is next."""
        updater, counters = self.updater, self.updater.module.counters
        whole = replace(self.sampler, columns=slice(None))  # the other ranks have no part in an evaluation
        batch = whole.draw(counters.updates, episodes=counters.episodes)
        return updater.module.learner.retrace_skill(updater.on_device(batch))

    def _play(self) -> None:
        """Play until this cycle's environment steps are reached; the first cycle plays none."""
        counters, settings = self.updater.module.counters, self.config.train
        while counters.env_steps < goal_of_cycle(settings, counters.cycle, self.first_env_steps):
            played = self.acting.next_episode()
            self.store.append(played.episode)
            counters.episodes += 1
            counters.env_steps += played.frames
            self.history.add_episode(counters.env_steps, played.total, len(played.episode.reward) - 1)


def open_replay(config: AgentConfig, work: Path, *, read_only: bool = False) -> EpisodeStore:
    """The replay memory of a work directory."""
    capacity = config.replay.capacity // config.env.action_repeat
    return EpisodeStore(work / "replay", capacity=capacity, read_only=read_only)


def _acting(
    config: AgentConfig,
    task: str,
    module: AgentModule,
    folder: Path,
    first_env_steps: int,
    start_workers: StartWorkers,
    stop: StopRequest,
) -> Acting:
    if not config.train.actors:
        return ActingHere(config, task, module, between=stop.check)
    return ActingAhead(
        config,
        task,
        module,
        folder=folder,
        first_env_steps=first_env_steps,
        start_workers=start_workers,
        between=stop.check,
    )


def _make_updater(config: AgentConfig, fabric: L.Fabric, store: EpisodeStore, *, seed: int) -> Updater:
    entry = store.entries[0]
    module = build_module(config, seed=seed, observation_shape=entry.observation_shape, actions=entry.action_size)
    return build_updater(fabric, module)


def _timed(loop: Loop) -> Cost:
    """Run the loop, and measure what it took."""
    counters, began = loop.updater.module.counters, time.monotonic()
    env_steps, updates = counters.env_steps, counters.updates
    loop.run()
    seconds = time.monotonic() - began
    return Cost(
        seconds=seconds,
        env_steps_per_second=(counters.env_steps - env_steps) / seconds,
        updates_per_second=(counters.updates - updates) / seconds,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        device=str(loop.updater.fabric.device),
    )


def _broadcast(fabric: L.Fabric, numbers: list[int]) -> list[int]:
    """The main process's numbers, on every rank."""
    if fabric.world_size == 1:
        return numbers
    told = torch.tensor(numbers, device=fabric.device)
    distributed.broadcast(told, 0)
    received: list[int] = told.tolist()
    return received
