"""Training one agent from its first data to its last update, in a work directory that can be left and entered again."""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import lightning as L
import torch
from lightning.pytorch.utilities.exceptions import SIGTERMException
from pydantic import JsonValue

from ccwm.agents.learner import Learner
from ccwm.envs.factory import make_env
from ccwm.ops.ranks import own_part, rank
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.seeds import named_seed
from ccwm.settings.agent import ActorCritic, Env, Model, Optimiser, Replay, Retrace, Train, Trainer, Truncation
from ccwm.settings.schema import Render
from ccwm.training.checkpoints import Checkpoints
from ccwm.training.cycle import Cycles, Followed, cycle_loader
from ccwm.training.finite import NotFinite
from ccwm.training.history import History, Log
from ccwm.training.memory import keep_freed_memory
from ccwm.training.module import CCWM
from ccwm.training.progress import LiveProgress
from ccwm.training.signals import deferred_signals
from ccwm.training.team import device_of, following, heed_the_leader, leading


class Learning(NamedTuple):
    """The settings that an agent is trained with, a variant's overrides applied."""

    env: Env
    render: Render
    replay: Replay
    model: Model
    retrace: Retrace
    truncation: Truncation
    actor_critic: ActorCritic
    optimiser: Optimiser
    train: Train
    trainer: Trainer

    def to_json(self) -> str:
        """One line that ``from_json`` reads."""
        return json.dumps({name: section.model_dump(mode="json") for name, section in self._asdict().items()})

    @classmethod
    def from_json(cls, line: str) -> Learning:
        """The settings of ``to_json``, checked once more."""
        sections = get_type_hints(cls)
        return cls(
            **{
                name: sections[name].model_validate_json(json.dumps(values))
                for name, values in json.loads(line).items()
            }
        )

    def flat(self) -> dict[str, JsonValue]:
        """Plain values under dotted keys: `train.batch`."""
        sections = {name: section.model_dump(mode="json") for name, section in self._asdict().items()}
        return {f"{name}.{field}": value for name, fields in sections.items() for field, value in fields.items()}


class Cost(NamedTuple):
    """What the last stretch of a run took; it differs from run to run and is no result."""

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

    module: CCWM
    history: History
    cost: Cost
    best: dict[str, Any]
    """The module's snapshot at the highest point of the learning curve."""


def train(learning: Learning, *, task: str, seed: int, data: Path, work: Path, log: Log, label: str) -> Trained:
    """Train until the budget of environment steps is spent, going on from the work directory's last checkpoint.

    The caller holds the work directory (``workplace.exclusive``) for longer: until the results are published.
    """
    torch.set_num_threads(learning.trainer.threads)
    keep_freed_memory()
    store = open_replay(learning, work)
    first = EpisodeStore(data, read_only=True)
    first_episodes, first_env_steps = len(first), _env_steps(first, learning.env.action_repeat)
    history = History(log=log)
    env = make_env(
        task,
        size=learning.env.size,
        action_repeat=learning.env.action_repeat,
        time_limit=learning.env.time_limit,
        quality=learning.render.quality,
    )
    try:
        actions = env.action_space.shape
        assert actions is not None
        module = build_module(learning, seed=seed, actions=actions[0])
        checkpoints = Checkpoints(work / "checkpoints", settings={"task": task, "seed": seed, **learning.flat()})
        saved = checkpoints.latest()
        if saved is not None:
            module.restore(saved["module"])
            history.restore(saved["history"])
            store.truncate(module.counters.episodes)
        else:
            store.truncate(min(len(store), first_episodes))
            store.copy_from(data)
            module.counters.episodes, module.counters.env_steps = len(store), first_env_steps
        with deferred_signals() as stop:
            cycles = Cycles(
                learning.train,
                envs=[env],
                store=store,
                first_env_steps=first_env_steps,
                history=history,
                checkpoints=checkpoints,
                stop=stop,
                exploration=config.actor_critic.exploration,
                seed=seed,
            )
            orders = {"learning": learning.to_json(), "seed": seed, "actions": actions[0], "work": str(work.absolute())}
            orders["cycles"] = cycles.total
            with leading(learning.trainer, FOLLOW, json.dumps(orders)):
                cost = _lead(learning, module, cycles, store, seed=seed, label=label)
            cycles.evaluate(module, final=True)
            cycles.save(module)
    finally:
        env.close()
    best = checkpoints.best()
    assert best is not None, "the first evaluation saves one"
    return Trained(module, history, cost, best["module"])


def build_module(learning: Learning, *, seed: int, actions: int) -> CCWM:
    """An untrained agent, a function of the seed; variants of one seed share the weights that they have in common."""
    with torch.random.fork_rng():
        torch.manual_seed(named_seed("weights", seed))
        learner = Learner(
            model=learning.model,
            retrace=learning.retrace,
            truncation=learning.truncation,
            actor_critic=config.actor_critic,
            size=learning.env.size,
            actions=actions,
        )
    return CCWM(learner, optimiser=learning.optimiser, seed=seed)


def _lead(learning: Learning, module: CCWM, cycles: Cycles, store: EpisodeStore, *, seed: int, label: str) -> Cost:
    """Make the cycles that are left, acting and learning."""
    settings, began, counters = learning.train, time.monotonic(), module.counters
    before = (counters.env_steps, counters.updates)
    progress = LiveProgress(
        cycles.history, env_steps=settings.env_steps, updates=cycles.total * settings.updates, label=label
    )
    try:
        device = _fit(learning, module, store, [cycles, progress], cycles=cycles.total, seed=seed)
    except SIGTERMException:  # Lightning saw the signal between two of our checks, and would exit with code 0
        cycles.save(module)
        cycles.stop.check()
        raise
    seconds = time.monotonic() - began
    return Cost(
        seconds=seconds,
        env_steps_per_second=(counters.env_steps - before[0]) / seconds,
        updates_per_second=(counters.updates - before[1]) / seconds,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        device=device,
    )


FOLLOW = "from ccwm.training.loop import follow; follow()"


def follow() -> None:
    """A process that shares the batches of a leader's training run, and writes nothing."""
    number, port, line = heed_the_leader()
    orders = json.loads(line)
    learning, work = Learning.from_json(orders["learning"]), Path(orders["work"])
    torch.set_num_threads(learning.trainer.threads)
    store = open_replay(learning, work, read_only=True)
    module = build_module(learning, seed=orders["seed"], actions=orders["actions"])
    saved = Checkpoints(work / "checkpoints").latest()
    if saved is not None:
        module.restore(saved["module"])
    with following(learning.trainer, number, port):
        try:
            callback = Followed(learning.train.updates, store)
            _fit(learning, module, store, [callback], cycles=orders["cycles"], seed=orders["seed"])
        except NotFinite:  # of the whole batch, so that the leader says it
            sys.exit(1)


def open_replay(learning: Learning, work: Path, *, read_only: bool = False) -> EpisodeStore:
    """The replay memory of a work directory."""
    capacity = learning.replay.capacity // learning.env.action_repeat
    return EpisodeStore(work / "replay", capacity=capacity, read_only=read_only)


def _fit(
    learning: Learning, module: CCWM, store: EpisodeStore, callbacks: list[L.Callback], *, cycles: int, seed: int
) -> str:
    """Run Lightning's fit loop over the cycles that are left, on one device, which it names.

    Lightning's own DDP is left alone: docs/decisions.md says why.
    """
    settings = learning.train
    sampler = WindowSampler(
        store,
        batch=settings.batch,
        length=settings.length,
        seed=seed,
        sampling=learning.replay.sampling,
        columns=own_part(settings.batch),
    )
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message=".*number of training batches.*logging interval.*")
    warnings.filterwarnings("ignore", message=".*treespec, LeafSpec.*")
    trainer = L.Trainer(
        accelerator=learning.trainer.accelerator,
        devices=device_of(learning.trainer, rank()),
        precision=learning.trainer.precision,
        max_epochs=max(cycles - module.counters.cycle, 0),
        reload_dataloaders_every_n_epochs=1,
        callbacks=callbacks,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module.train_dataloader = lambda: cycle_loader(module, sampler, settings.updates)  # type: ignore[method-assign]
    if module.counters.cycle < cycles:
        trainer.fit(module)
    return str(trainer.strategy.root_device)


def _env_steps(store: EpisodeStore, action_repeat: int) -> int:
    """Simulator frames behind the stored steps; a reset takes none."""
    return (store.steps - len(store)) * action_repeat
