"""How acting and learning alternate: one Lightning epoch is one cycle."""

from __future__ import annotations

from collections.abc import Sequence

import lightning as L
import numpy as np
import torch
from torch import distributed
from torch.utils.data import DataLoader, Dataset

from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.envs.vector import World
from ccwm.ops.ranks import world_size
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.seeds import episode_seed
from ccwm.settings.agent import Train
from ccwm.structs import Batch
from ccwm.training.checkpoints import Checkpoints
from ccwm.training.history import History
from ccwm.training.module import CCWM, Counters
from ccwm.training.rollouts import play
from ccwm.training.signals import Interrupted, StopRequest


def number_of_cycles(settings: Train, first_env_steps: int) -> int:
    """The first cycle, which only learns, and as many as spend what the random episodes left of the budget."""
    owed = max(settings.env_steps - first_env_steps, 0)
    return 1 + -(-owed // settings.update_every)


class CycleBatches(Dataset[Batch]):
    """The batches that are left of the current cycle; each is a function of (seed, update, episodes so far)."""

    def __init__(self, sampler: WindowSampler, counters: Counters, per_cycle: int) -> None:
        self.sampler, self.counters = sampler, counters
        self.first = counters.updates
        self.left = (counters.cycle + 1) * per_cycle - counters.updates

    def __len__(self) -> int:
        """Updates that this cycle still owes."""
        return self.left

    def __getitem__(self, index: int) -> Batch:
        """The batch of the cycle's next updates, counted from where it was entered."""
        return self.sampler.draw(self.first + index, episodes=self.counters.episodes)


def cycle_loader(module: CCWM, sampler: WindowSampler, per_cycle: int) -> DataLoader[Batch]:
    """The current cycle's batches for Lightning; for an accelerator in pinned memory, from where copies do not wait."""
    batches = CycleBatches(sampler, module.counters, per_cycle)
    return DataLoader(batches, batch_size=None, pin_memory=module.device.type != "cpu")


def agree(module: CCWM) -> None:
    """All ranks go on from rank 0's counters: it has acted, they have not."""
    counters = module.counters
    told = torch.tensor([counters.cycle, counters.updates, counters.env_steps, counters.episodes], device=module.device)
    distributed.broadcast(told, 0)
    cycle, updates, counters.env_steps, counters.episodes = told.tolist()
    if (cycle, updates) != (counters.cycle, counters.updates):
        raise RuntimeError(f"rank 0 is at update {updates}, this process at {counters.updates}: they share no weights")


class Followed(L.Callback):
    """What a process that only shares the batch does around a cycle's updates: wait until rank 0 has acted."""

    def __init__(self, per_cycle: int, store: EpisodeStore) -> None:
        self.per_cycle, self.store = per_cycle, store

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Take over rank 0's counters, and see the episodes that it has written by then."""
        assert isinstance(pl_module, CCWM)
        agree(pl_module)
        self.store.refresh()

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: object) -> None:
        """Count cycles."""
        assert isinstance(pl_module, CCWM)
        if pl_module.counters.updates == (pl_module.counters.cycle + 1) * self.per_cycle:
            pl_module.counters.cycle += 1


class Cycles(L.Callback):
    """Before a cycle's updates: evaluate where it is due, then act until the cycle's steps are there.

    All state lives in the module's counters, the history and the store, each whole between two updates; so a run can
    stop at any update and go on exactly there.
    """

    def __init__(
        self,
        settings: Train,
        *,
        envs: Sequence[World],
        store: EpisodeStore,
        first_env_steps: int,
        history: History,
        checkpoints: Checkpoints,
        stop: StopRequest,
        exploration: float,
        seed: int,
    ) -> None:
        self.settings, self.envs, self.store, self.history = settings, envs, store, history
        self.checkpoints, self.stop, self.exploration, self.seed = checkpoints, stop, exploration, seed
        self.first_env_steps = first_env_steps

    @property
    def total(self) -> int:
        """How many cycles spend the budget of environment steps."""
        return number_of_cycles(self.settings, self.first_env_steps)

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Evaluate if due, then act; whoever shares the batch waits for it."""
        assert isinstance(pl_module, CCWM)
        counters = pl_module.counters
        try:
            # A run that was interrupted within a cycle must not evaluate the weights that it has there.
            if counters.begun == counters.cycle:
                self.evaluate(pl_module)
                counters.begun += 1
            self._act(pl_module)
        except Interrupted:
            self.save(pl_module)
            raise
        if world_size() > 1:
            agree(pl_module)

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: object) -> None:
        """Report losses, and end here if a signal asked for it."""
        assert isinstance(pl_module, CCWM)
        counters = pl_module.counters
        if counters.updates % self.settings.log_every == 0:
            self.history.add_losses(counters.env_steps, counters.updates, pl_module.averages())
        stopping = self.stop.signum is not None  # read once: a signal from here on waits for the next update
        ended = counters.updates == (counters.cycle + 1) * self.settings.updates
        if ended:
            counters.cycle += 1
        if ended or stopping:
            self.save(pl_module)
        if stopping:
            self.stop.check()

    def evaluate(self, module: CCWM, *, final: bool = False) -> None:
        """A point of the learning curve, where environment steps have crossed a multiple or the weights are final."""
        counters, every = module.counters, self.settings.evaluate_every
        if self.history.curve:
            last = self.history.curve[-1]
            due = counters.env_steps // every > last["env_steps"] // every
            if not due and not (final and counters.updates > last["updates"]):
                return
        policy = RecurrentPolicy(module.learner.world_model, module.learner.actor_critic.actor)
        returns: list[float] = []
        successes: list[bool] = []
        for first in range(0, self.settings.evaluate_episodes, len(self.envs)):
            wanted = range(first, min(first + len(self.envs), self.settings.evaluate_episodes))
            seeds = [episode_seed("curve", self.seed, index) for index in wanted]
            for played in play(self.envs[: len(seeds)], policy, seeds, between=self.stop.check):
                returns.append(played.total)
                if played.success is not None:
                    successes.append(played.success)
        if np.mean(returns) > max((row["return_mean"] for row in self.history.curve), default=-np.inf):
            # Before the point is recorded: whoever is stopped in between measures again.
            self.checkpoints.save_best({"module": module.snapshot()})
        self.history.add_evaluation(counters.env_steps, counters.updates, returns, successes)

    def save(self, module: CCWM) -> None:
        """Write a checkpoint of this very update."""
        self.checkpoints.save({"module": module.snapshot(), "history": self.history.state()})

    def _act(self, module: CCWM) -> None:
        """Play whole episodes until this cycle's environment steps are reached; the first cycle plays none."""
        counters = module.counters
        goal = self.first_env_steps + counters.cycle * self.settings.update_every
        policy = RecurrentPolicy(
            module.learner.world_model, module.learner.actor_critic.actor, exploration=self.exploration
        )
        while counters.env_steps < min(goal, self.settings.env_steps):
            seed = episode_seed("episode", self.seed, counters.episodes)
            (played,) = play(self.envs[:1], policy, [seed], between=self.stop.check)
            self.store.append(played.episode)
            counters.episodes += 1
            counters.env_steps += played.frames
            self.history.add_episode(counters.env_steps, played.total, len(played.episode.reward) - 1)
