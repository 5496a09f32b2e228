"""The world model: observing, predicting, and the forward losses."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ccwm.agents.distributed import free_nats
from ccwm.agents.precision import cast_outputs
from ccwm.losses.model import continue_loss, observation_loss
from ccwm.nets.mlp import ScalarHead
from ccwm.nets.pixels import PixelDecoder, PixelEncoder, normalise, to_pixels
from ccwm.nets.rssm import RSSM
from ccwm.ops.gaussian import kl_divergence, unit_nll
from ccwm.settings.agent import Model
from ccwm.structs import Batch, Gaussian, LatentState, Terms, stack


class Observed(NamedTuple):
    """What one forward sweep over a batch gives."""

    target: Tensor  # [T, B, *target], what the decoder is to predict
    posterior: LatentState  # [T, B, ·]
    prior: Gaussian  # [T, B, stoch]


class WorldModel(nn.Module):
    """Encoder, RSSM, decoder, reward head and, for tasks that terminate, a continue head."""

    def __init__(self, model: Model, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__()
        self.settings = model
        size = observation_shape[0]
        self.encoder = PixelEncoder(size=size, depth=model.depth)
        self.rssm = RSSM(
            embed=self.encoder.outputs,
            actions=actions,
            deter=model.deter,
            stoch=model.stoch,
            hidden=model.hidden,
            min_std=model.min_std,
            activation=model.activation,
        )
        head = {"feature": self.rssm.feature, "units": model.reward_units, "layers": model.reward_layers}
        self.decoder = PixelDecoder(feature=self.rssm.feature, size=size, depth=model.depth)
        self.reward = ScalarHead(**head)
        self.continues = ScalarHead(**head) if model.continues else None
        cast_outputs(self.decoder, self.reward, self.rssm.cell, self.rssm.prior_out, self.rssm.posterior_out)
        if self.continues is not None:
            cast_outputs(self.continues)

    @property
    def dtype(self) -> torch.dtype:
        """The number format of the weights."""
        return self.rssm.enter.weight.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.rssm.enter.weight.device

    def target(self, observation: Tensor) -> Tensor:
        """Observations as the encoder reads and the decoder predicts them: [..., *observation] → [..., *target]."""
        return normalise(observation, self.dtype)

    def to_observation(self, decoded: Tensor) -> Tensor:
        """The decoder's output as observations: [..., *target] → [..., *observation]."""
        return to_pixels(decoded)

    def embed(self, target: Tensor) -> Tensor:
        """e = q_φ(O), projected for the RSSM: [..., *target] → [..., hidden]."""
        projected: Tensor = self.rssm.embed(self.encoder(target))
        return projected

    def decode(self, feature: Tensor) -> Tensor:
        """The mean of p_θ(O|z): [..., F] → [..., *target]."""
        decoded: Tensor = self.decoder(feature)
        return decoded

    def predict(self, state: LatentState, action: Tensor, noise: Tensor) -> LatentState:
        """One step of the prior: [N, ·], [N, A], [N, stoch] → [N, ·]."""
        return self.rssm.predict(state, action, noise)

    def correct(
        self, state: LatentState, action: Tensor, embed: Tensor, is_first: Tensor, noise: Tensor
    ) -> LatentState:
        """One step of the posterior; ``is_first`` [N] clears state and action of the rows where an episode begins."""
        keep = (~is_first).to(action.dtype).unsqueeze(-1)
        return self.rssm.correct(state.map(lambda part: part * keep), action * keep, embed, noise)

    def observe(self, batch: Batch, noise: Tensor) -> Observed:
        """One forward sweep: posteriors z̃ and priors ẑ of every step."""
        target = self.target(batch.observation)
        embed = self.embed(target)
        state = self.rssm.initial(batch.action[0])
        states = []
        for t in range(len(embed)):
            state = self.correct(state, batch.action[t], embed[t], batch.is_first[t], noise[t])
            states.append(state)
        posterior = stack(states)
        return Observed(target, posterior, self.rssm.prior(posterior.deter))

    def loss(self, batch: Batch, observed: Observed) -> Terms:
        """The weighted forward terms (Eq. 2–4), and the KL before its free nats."""
        settings, feature = self.settings, observed.posterior.feature
        divergence = kl_divergence(observed.posterior.gaussian, observed.prior).mean()
        losses = {
            "observation": settings.observation_scale * self.reconstruction(feature, observed.target).mean(),
            "reward": settings.reward_scale * unit_nll(self.reward(feature), batch.reward).mean(),
            "kl": settings.kl_scale * free_nats(divergence, settings.free_nats),
        }
        if self.continues is not None:
            losses["continues"] = continue_loss(self.continues(feature), batch.continues)
        return Terms(losses, {"nats": divergence.detach()})

    def reconstruction(self, feature: Tensor, target: Tensor) -> Tensor:
        """−log p_θ(O|z) without its constant: [..., F], [..., *target] → [...]."""
        return observation_loss(self.decode(feature), target, axes=target.ndim - feature.ndim + 1)

    def discount(self, feature: Tensor, gamma: float) -> Tensor:
        """γ times the probability that the episode continues: [..., F] → [...]."""
        if self.continues is None:
            return torch.full_like(feature[..., 0], gamma)
        return gamma * torch.sigmoid(self.continues(feature))
