"""PlayVirtual (Yu et al., 2021): deterministic dynamics that cycles of virtual actions teach, and SAC on the latent."""

from __future__ import annotations

import copy
from collections import deque

import numpy as np
import torch
from torch import Tensor, nn

from ccwm.agents.learner import Learner
from ccwm.agents.noise import Virtual
from ccwm.agents.sac import StatePolicy, build_networks
from ccwm.agents.world_model import build_encoder
from ccwm.losses.cycle import cosine_distance
from ccwm.nets.dynamics import Dynamics
from ccwm.nets.init import init_weights
from ccwm.nets.mlp import dense
from ccwm.ops.shift import shift
from ccwm.settings.agent import AgentConfig
from ccwm.structs import Batch


class LatentEncoder(nn.Module):
    """The latent of the last frames: one state, or ``playvirtual.frames`` images, which alone show velocities."""

    def __init__(self, config: AgentConfig, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder, latent = build_encoder(config.model, shape), config.playvirtual.latent
        self.frames = config.playvirtual.frames if len(shape) == 3 else 1
        self.latent = nn.Sequential(nn.Linear(self.frames * self.encoder.outputs, latent), nn.LayerNorm(latent))

    def forward(self, target: Tensor) -> Tensor:
        """[T, B, *target] → [T − frames + 1, B, latent]."""
        embed, count = self.encoder(target), len(target) - self.frames + 1
        latent: Tensor = self.latent(torch.cat([embed[first : first + count] for first in range(self.frames)], -1))
        return latent


class PlayVirtualLearner(Learner):
    """Encoder, forward and backward dynamics, the heads that distances are taken behind, and SAC's networks."""

    has_world_model = False
    acting_parts = ("encoder.", "networks.actor.")

    def __init__(self, config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__(config, observation_shape=observation_shape, actions=actions)
        settings, init = config.playvirtual, config.model.init
        latent, units = settings.latent, settings.units

        def dynamics() -> Dynamics:
            return init_weights(Dynamics(feature=latent, actions=actions, units=units, activation="relu"), init)

        self.encoder = init_weights(LatentEncoder(config, observation_shape), init)
        self.dynamics = dynamics()
        self.project, self.predict = (
            init_weights(dense(latent, units, latent, 1, activation="relu"), init) for _ in range(2)
        )
        self.slow_encoder, self.slow_project = (
            copy.deepcopy(part).requires_grad_(False) for part in (self.encoder, self.project)
        )
        self.networks = build_networks(config.sac, inputs=latent, actions=actions)
        self.log_temperature = nn.Parameter(torch.zeros(1))  # α = 1
        # Built last, so that the agent without cycles starts from the same weights everywhere else.
        self.backward_dynamics: Dynamics | None = None
        if config.retrace.weight > 0:
            self.backward_dynamics = dynamics()

    def policy(self, *, explore: bool = False) -> LatentPolicy:
        """SAC's actor on the latent: its mode, or draws from it."""
        return LatentPolicy(self, explore=explore)

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The representation's parameters; SAC steps its own."""
        networks = (self.encoder, self.dynamics, self.project, self.predict, self.backward_dynamics)
        return {"model": [weight for part in networks if part is not None for weight in part.parameters()]}

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the slow encoder and the slow projection."""
        for slow, fast in ((self.slow_encoder, self.encoder), (self.slow_project, self.project)):
            for target, weight in zip(slow.parameters(), fast.parameters(), strict=True):
                target.lerp_(weight, self.config.playvirtual.target_rate)

    def target(self, observation: Tensor) -> Tensor:
        """Observations as the encoder reads them: [..., *observation] → [..., *target]."""
        return self.encoder.encoder.target(observation, self.dtype)

    def encode(self, batch: Batch, virtual: Virtual) -> tuple[Tensor, Tensor]:
        """Latents, and the slow projections that are to be predicted, of another augmentation: [K + 1, B, ·] each."""
        one = other = self.target(batch.observation)
        if one.ndim == 5:  # pixels
            one, other = (shift(one, offset, most=self.config.playvirtual.shift) for offset in virtual.offsets)
        with torch.no_grad():  # stop-gradient on the targets
            wanted: Tensor = self.slow_project(self.slow_encoder(other))
        return self.encoder(one), wanted

    def prediction(self, latent: Tensor, wanted: Tensor, action: Tensor) -> Tensor:
        """Σ_k d(ẑ_k, z_k) along the actions [K, B, A] that were taken from the first latent.   → scalar."""
        state, distances = latent[0], []
        for k, taken in enumerate(action, 1):
            state = self.dynamics(state, taken)
            distances.append(cosine_distance(self.predict(self.project(state)), wanted[k]).mean())
        return torch.stack(distances).sum()

    def cycle(self, latent: Tensor, wanted: Tensor, actions: Tensor) -> Tensor:
        """d(z_0, ž_0), out by virtual actions [K, M, B, A] and back by the same in reverse order.   → scalar."""
        assert self.backward_dynamics is not None
        state = latent[0].expand(*actions.shape[1:3], -1)
        for action in actions:
            state = self.dynamics(state, action)
        for action in actions.flip(0):
            state = self.backward_dynamics(state, action)
        return cosine_distance(self.predict(self.project(state)), wanted[0]).mean()


class LatentPolicy(StatePolicy):
    """SAC's actor on the latent of the last frames; before an episode's first frame stands the first again."""

    def __init__(self, learner: PlayVirtualLearner, *, explore: bool) -> None:
        self.learner = learner
        super().__init__(learner.networks.actor, explore=explore)

    def reset(self, seed: int) -> None:
        """Start an episode; all randomness in it is a function of the seed."""
        super().reset(seed)
        self.frames: deque[Tensor] = deque(maxlen=self.learner.encoder.frames)

    def feature(self, observation: np.ndarray) -> Tensor:
        """The latent: [*observation] → [1, latent]."""
        seen = torch.from_numpy(observation).to(next(self.learner.parameters()).device)
        frame = self.learner.target(seen.unsqueeze(0))
        self.frames.extend([frame] * max(self.learner.encoder.frames - len(self.frames), 1))
        latent: Tensor = self.learner.encoder(torch.stack(list(self.frames)))[0]
        return latent
