"""How a training run acts: in its own process, or in worker processes that are one cycle ahead of the updates."""

from __future__ import annotations

import functools
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from ccwm.agents.build import build_learner
from ccwm.agents.learner import Learner
from ccwm.agents.policy import Policy
from ccwm.envs.factory import make_env
from ccwm.seeds import episode_seed
from ccwm.settings.agent import AgentConfig, Train
from ccwm.training.rollouts import FromFiles, Pending, Rollout, StartWorkers, play_episode

if TYPE_CHECKING:
    from ccwm.training.module import AgentModule  # it imports Lightning: for an actor, seconds and memory


class Acting(Protocol):
    """Plays the episodes of a run; each is a function of weights, seed and exploration."""

    def evaluate(self, seeds: Sequence[int]) -> list[Rollout]:
        """Greedy episodes with the weights of this moment."""

    def next_episode(self) -> Rollout:
        """The next exploring episode of this cycle."""

    def begin_updates(self) -> None:
        """The episodes of this cycle are in the replay, and its updates begin."""

    def after_update(self) -> None:
        """Called between updates."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run cannot know otherwise."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume; the counters are those of the checkpoint already."""

    def close(self) -> None:
        """End what was started."""


def goal_of_cycle(settings: Train, cycle: int, first_env_steps: int) -> int:
    """The environment steps that are played before the updates of a cycle; the first plays none."""
    return min(first_env_steps + cycle * settings.update_every, settings.env_steps)


class ActingHere:
    """This process plays an episode when it is due, with the weights of that moment."""

    def __init__(self, config: AgentConfig, task: str, module: AgentModule, *, between: Callable[[], None]) -> None:
        self.module, self.between = module, between
        self.env = make_env(task, config.env)

    def evaluate(self, seeds: Sequence[int]) -> list[Rollout]:
        """Greedy episodes."""
        return [self._play(seed, explore=False) for seed in seeds]

    def next_episode(self) -> Rollout:
        """The next exploring episode."""
        return self._play(episode_seed("episode", self.module.seed, self.module.counters.episodes), explore=True)

    def _play(self, seed: int, *, explore: bool) -> Rollout:
        return play_episode(self.env, self.module.learner.policy(explore=explore), seed, between=self.between)

    def begin_updates(self) -> None:
        """Nothing."""

    def after_update(self) -> None:
        """Nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing: weights and counters say all."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


class ActingAhead:
    """Workers play cycle c with the weights that cycle c − 1 began its updates with, while these updates are made.

    The lag is fixed and workers compute on one thread of the CPU, so that neither their number nor their deaths change
    a bit.
    """

    def __init__(
        self,
        config: AgentConfig,
        task: str,
        module: AgentModule,
        *,
        folder: Path,
        first_env_steps: int,
        start_workers: StartWorkers,
        between: Callable[[], None],
    ) -> None:
        """``folder`` is for the weights: a pipe of multiprocessing may hang if a worker dies while much is sent."""
        self.config, self.module, self.first_env_steps, self.between = config, module, first_env_steps, between
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        hint = "lower train.actors if memory is short; 0 plays in the stage's own process, without a lag"
        self.workers = start_workers(task, config.env, config.train.actors, hint=hint)
        self.pending: deque[Pending] = deque()
        self.cycle = 0
        self.weights: dict[str, Tensor] = {}

    def evaluate(self, seeds: Sequence[int]) -> list[Rollout]:
        """Greedy episodes, as many at once as there are workers."""
        make_policy = self._policy("greedy", acting_weights(self.module.learner), explore=False)
        asked = [self.workers.submit(make_policy, seed) for seed in seeds]
        return [self.workers.result(each, between=self.between) for each in asked]

    def next_episode(self) -> Rollout:
        """The oldest of the episodes that are played ahead."""
        self.after_update()
        rollout = self.workers.result(self.pending.popleft(), between=self.between)
        self.owed -= rollout.frames
        return rollout

    def begin_updates(self) -> None:
        """Have the next cycle played with the weights of this moment, unless a resumed run plays it already."""
        counters = self.module.counters
        if self.cycle <= counters.cycle:
            self.cycle, self.weights = counters.cycle + 1, acting_weights(self.module.learner)
            self._begin()

    def _begin(self) -> None:
        counters, settings = self.module.counters, self.config.train
        self.owed = goal_of_cycle(settings, self.cycle, self.first_env_steps) - counters.env_steps
        self.index = counters.episodes
        self.make_policy = self._policy("exploring", self.weights, explore=True)
        self.after_update()

    def after_update(self) -> None:
        """Submit episodes for as long as even the longest possible ones would not be enough: never one too many."""
        self.workers.replace_dead()
        limit = self.config.env.time_limit
        while sum(each.frames or limit for each in self.pending) < self.owed:
            seed = episode_seed("episode", self.module.seed, self.index)
            self.pending.append(self.workers.submit(self.make_policy, seed))
            self.index += 1

    def _policy(self, name: str, weights: dict[str, Tensor], *, explore: bool) -> FromFiles:
        """Write the weights over those of the same name, whose episodes have all come back."""
        path, shape = self.folder / f"{name}.safetensors", self.module.learner.observation_shape
        sizes = " ".join(map(str, shape))
        save_file(weights, path, metadata={"config": self.config.model_dump_json(), "observation_shape": sizes})
        return FromFiles(path.resolve(), functools.partial(load_policy, explore=explore))

    def state_dict(self) -> dict[str, Any]:
        """The cycle that is played ahead, and its weights: its episodes are a function of them, and played again."""
        return {"cycle": self.cycle, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Play ahead what was played when the checkpoint was written."""
        self.cycle, self.weights = state["cycle"], state["weights"]
        if self.weights:
            self._begin()

    def close(self) -> None:
        """End the workers."""
        self.workers.close()


def acting_weights(learner: Learner) -> dict[str, Tensor]:
    """A copy, on the CPU, of what a policy needs."""
    found = {name: value for name, value in learner.state_dict().items() if name.startswith(learner.acting_parts)}
    return {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in found.items()}


def load_policy(path: Path, actions: int, *, explore: bool) -> Policy:
    """The policy of ``acting_weights`` in a file that also names their config and observation shape."""
    with safe_open(path, "pt") as file:
        about = file.metadata()
        # Cloned, since a product of matrices differs in its last bits between memory that is aligned and a file's.
        weights = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    learner = _learner(about["config"], about["observation_shape"], actions)
    # Assigned, since their number format may be another.
    missing, unknown = learner.load_state_dict(weights, strict=False, assign=True)
    assert not unknown
    assert not any(name.startswith(learner.acting_parts) for name in missing)
    return learner.policy(explore=explore)


@functools.lru_cache(maxsize=1)
def _learner(config: str, shape: str, actions: int) -> Learner:
    sizes = tuple(map(int, shape.split()))
    return build_learner(AgentConfig.model_validate_json(config), observation_shape=sizes, actions=actions)
