"""The world model: observing, predicting, and the forward losses."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import torch
from torch import Tensor, nn

from ccwm.agents.distributed import free_nats
from ccwm.agents.precision import cast_outputs, gradients_are_scaled
from ccwm.losses.model import balanced_kl, observation_loss
from ccwm.nets.mlp import ContinueHead, Head
from ccwm.nets.pixels import IMAGES, PixelDecoder, PixelEncoder
from ccwm.nets.rssm import RSSM
from ccwm.nets.vectors import VectorDecoder, VectorEncoder
from ccwm.ops.chunks import mean_in_chunks
from ccwm.settings.agent import Model
from ccwm.structs import Batch, Gaussian, LatentState, Terms, stack


class Observed(NamedTuple):
    """What one forward sweep over a batch gives."""

    target: Tensor  # [T, B, *target], what the decoder is to predict
    posterior: LatentState  # [T, B, ·]
    prior: Gaussian  # [T, B, stoch]
    action: Tensor  # [T, B, A], zero where an episode begins

    def rows(self, steps: slice) -> Observed:
        """Those of some steps."""
        prior = Gaussian(*(part[steps] for part in self.prior))
        return Observed(self.target[steps], self.posterior.map(lambda part: part[steps]), prior, self.action[steps])


class WorldModel(nn.Module):
    """Encoder, RSSM, decoder, reward head and, for tasks that terminate, a continue head."""

    def __init__(self, model: Model, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__()
        self.settings = model
        style: _Style = {"activation": model.activation, "norm": model.layer_norm}
        self.encoder = build_encoder(model, observation_shape)
        self.rssm = RSSM(
            embed=self.encoder.outputs,
            actions=actions,
            deter=model.deter,
            stoch=model.stoch,
            hidden=model.hidden,
            min_std=model.min_std,
            **style,
        )
        feature, units, layers = self.rssm.feature, model.reward_units, model.reward_layers
        self.decoder = _decoder(model, observation_shape, feature, style)
        self.reward = Head(
            model.reward_head,
            feature=feature,
            units=units,
            layers=layers,
            zero=model.zero_heads,
            bins=model.bins,
            limit=model.bin_limit,
            **style,
        )
        self.continues: ContinueHead | None = None
        if model.continues:
            self.continues = ContinueHead(feature=feature, units=units, layers=layers, **style)
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
        return self.encoder.target(observation, self.dtype)

    def to_observation(self, decoded: Tensor) -> Tensor:
        """The decoder's output as observations: [..., *target] → [..., *observation]."""
        return self.encoder.to_observation(decoded)

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

    def observe(self, batch: Batch, noise: Tensor) -> Observed:
        """One forward sweep: posteriors z̃ and priors ẑ of every step; each episode begins with a zero state."""
        target = self.target(batch.observation)
        embed = self.embed(target)
        keep = (~batch.is_first).to(batch.action.dtype).unsqueeze(-1)
        action = batch.action * keep
        state, states = self.rssm.initial(action[0]), []
        for t in range(len(embed)):
            before = state._replace(deter=state.deter * keep[t], stoch=state.stoch * keep[t])
            state = self.rssm.correct(before, action[t], embed[t], noise[t])
            states.append(state)
        posterior = stack(states)
        return Observed(target, posterior, self.rssm.prior(posterior.deter), action)

    def loss(self, batch: Batch, observed: Observed) -> Terms:
        """The weighted forward terms (Eq. 2–4), and the KL before its free nats."""
        settings, feature = self.settings, observed.posterior.feature
        weights = {"dynamics": settings.kl_dynamics, "representation": settings.kl_representation}
        divergence = balanced_kl(observed.posterior.gaussian, observed.prior, **weights).mean()
        losses = {
            "observation": settings.observation_scale * self.mean_reconstruction(feature, observed.target),
            "reward": settings.reward_scale * self.reward(feature).nll(batch.reward).mean(),
            "kl": free_nats(divergence, settings.free_nats),
        }
        if self.continues is not None:
            losses["continues"] = self.continues(feature).nll(batch.continues).mean()
        return Terms(losses, {"nats": divergence.detach()})

    def reconstruction(self, feature: Tensor, target: Tensor) -> Tensor:
        """−log p_θ(O|z) without its constant: [..., F], [..., *target] → [...]."""
        return observation_loss(self.decode(feature), target, axes=target.ndim - feature.ndim + 1)

    def mean_reconstruction(self, feature: Tensor, target: Tensor) -> Tensor:
        """The mean of ``reconstruction``; what many images would leave for the way back is never there at once."""
        images = target.shape[:-3].numel()  # 1 of state vectors
        if images <= IMAGES or gradients_are_scaled(feature.device):
            return self.reconstruction(feature, target).mean()
        rows = feature.flatten(0, -2), target.flatten(0, -4)
        return mean_in_chunks(self.reconstruction, *rows, weights=list(self.decoder.parameters()), rows=IMAGES)

    def discount(self, feature: Tensor, gamma: float) -> Tensor:
        """γ times the probability that the episode continues: [..., F] → [...]."""
        if self.continues is None:
            return torch.full_like(feature[..., 0], gamma)
        probability: Tensor = self.continues(feature).mean
        return gamma * probability


class _Style(TypedDict):
    """What all dense layers of the model share."""

    activation: str
    norm: bool


def build_encoder(model: Model, shape: tuple[int, ...]) -> PixelEncoder | VectorEncoder:
    """e = q_φ(O), untrained, of images or of state vectors."""
    if len(shape) == 3:
        return PixelEncoder(size=shape[0], depth=model.depth)
    return VectorEncoder(
        size=shape[0],
        units=model.vector_units,
        layers=model.vector_layers,
        activation=model.activation,
        norm=model.layer_norm,
        squash=model.symlog,
    )


def _decoder(model: Model, shape: tuple[int, ...], feature: int, style: _Style) -> PixelDecoder | VectorDecoder:
    if len(shape) == 3:
        return PixelDecoder(feature=feature, size=shape[0], depth=model.depth)
    return VectorDecoder(feature=feature, size=shape[0], units=model.vector_units, layers=model.vector_layers, **style)
