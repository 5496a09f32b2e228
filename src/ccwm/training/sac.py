"""An update of soft actor-critic: stable-baselines3's own gradient step, on our transitions and our randomness."""

from __future__ import annotations

from typing import Any

import lightning as L
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.sac.policies import SACPolicy
from torch import Tensor

from ccwm.agents.sac import SACLearner, Soft
from ccwm.seeds import named_seed
from ccwm.structs import Batch
from ccwm.training.finite import not_finite
from ccwm.training.module import AgentModule
from ccwm.training.update import Updater

LOGGED = {
    "critic/loss": "train/critic_loss",
    "actor/loss": "train/actor_loss",
    "temperature/loss": "train/ent_coef_loss",
    "temperature/alpha": "train/ent_coef",
}
"""Our names of what stable-baselines3 logs."""
HINT = "lower sac.learning_rate, or look at the data with NaN in it"


def transitions(batch: Batch, states: Tensor) -> ReplayBufferSamples:
    """The N = (T − 1) · B transitions of the last T steps, with states [T, B, ·]: (s, a, s', done, r) of [N, ·] each.

    A time limit is not done.
    """
    steps = slice(1 - len(states), None)
    return ReplayBufferSamples(
        states[:-1].flatten(0, 1),
        batch.action[steps].flatten(0, 1),
        states[1:].flatten(0, 1),
        (1 - batch.continues[steps]).reshape(-1, 1),
        batch.reward[steps].reshape(-1, 1),
    )


class OneBatch(ReplayBuffer):
    """A replay buffer whose next sample is the batch that it was given."""

    def __init__(self) -> None:
        self.samples: ReplayBufferSamples | None = None

    def sample(self, batch_size: int, env: object = None) -> ReplayBufferSamples:
        """The batch as it is."""
        assert self.samples is not None
        return self.samples


class Algorithm(SAC):
    """stable-baselines3's SAC on the networks of a learner, which also holds the temperature."""

    def __init__(self, learner: Soft, device: torch.device) -> None:
        self.learner, settings = learner, learner.config.sac
        super().__init__(
            SACPolicy,
            None,  # type: ignore[arg-type]  # as SAC.load does: episodes are played elsewhere
            learning_rate=settings.learning_rate,
            tau=settings.tau,
            gamma=settings.discount,
            target_entropy=float(-learner.actions),
            device=device,
        )

    def _setup_model(self) -> None:
        """Take the learner's networks in the place of new ones."""
        self._setup_lr_schedule()
        self.policy = self.learner.networks
        self._create_aliases()
        self.batch_norm_stats = self.batch_norm_stats_target = []
        self.log_ent_coef = self.learner.log_temperature
        self.ent_coef_optimizer = torch.optim.Adam([self.log_ent_coef], lr=self.lr_schedule(1))
        self.replay_buffer = OneBatch()
        self.set_logger(Logger(None, []))


class SoftStep:
    """Critics, actor and temperature in turn, each with its own Adam, as stable-baselines3 steps them."""

    def __init__(self, learner: Soft, device: torch.device) -> None:
        self.algorithm = Algorithm(learner, device)
        temperature = self.algorithm.ent_coef_optimizer
        assert temperature is not None
        self.optimizers: dict[str, torch.optim.Optimizer] = {
            "actor": learner.networks.actor.optimizer,
            "critic": learner.networks.critic.optimizer,
            "temperature": temperature,
        }

    def __call__(self, samples: ReplayBufferSamples, module: AgentModule) -> dict[str, Tensor]:
        """One gradient step, whose draws are a function of (seed, update)."""
        device, update = samples.rewards.device, module.counters.updates
        buffer = self.algorithm.replay_buffer
        assert isinstance(buffer, OneBatch)
        buffer.samples = samples
        with torch.random.fork_rng([] if device.type == "cpu" else [device], device_type=device.type):
            torch.manual_seed(named_seed("update", module.seed, update, "sac"))
            self.algorithm.train(gradient_steps=1, batch_size=len(samples.rewards))
        logged = self.algorithm.logger.name_to_value
        metrics = {name: torch.tensor(float(logged[theirs])) for name, theirs in LOGGED.items()}
        refuse_not_finite(update, metrics)
        return metrics

    def state_dict(self, module: AgentModule) -> dict[str, Any]:
        """Each Adam's moments; weights that are not finite are refused here, before anything is saved."""
        refuse_not_finite(module.counters.updates, module.learner.state_dict())
        return {"optimizers": {part: of.state_dict() for part, of in self.optimizers.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a ``state_dict``."""
        for part, of in self.optimizers.items():
            of.load_state_dict(state["optimizers"][part])


def refuse_not_finite(update: int, values: dict[str, Tensor]) -> None:
    """Raise NotFinite with the names of those that are not finite."""
    wrong = ~torch.stack([value.isfinite().all().cpu() for value in values.values()])
    if wrong.any():
        raise not_finite(update, list(values), wrong, hint=HINT)


class SACUpdater(Updater):
    """SAC's step on the transitions of states."""

    def __init__(self, fabric: L.Fabric, module: AgentModule) -> None:
        super().__init__(fabric, module)
        assert isinstance(module.learner, SACLearner)
        self.soft_step = SoftStep(module.learner, fabric.device)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """One gradient step."""
        return self.soft_step(transitions(batch, batch.observation), self.module)

    def optimizer_state(self) -> dict[str, Any]:
        """Each Adam's moments."""
        return self.soft_step.state_dict(self.module)

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        """Resume from an ``optimizer_state``."""
        self.soft_step.load_state_dict(state)
