"""The world model: observing, and the forward losses."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ccwm.losses.model import centred, continue_loss, image_loss, kl_with_free_nats
from ccwm.nets.conv import Decoder, Encoder
from ccwm.nets.mlp import ScalarHead
from ccwm.nets.rssm import RSSM
from ccwm.ops.gaussian import unit_nll
from ccwm.settings.agent import Model
from ccwm.structs import Batch, Gaussian, LatentState, stack


class Observed(NamedTuple):
    """What one forward sweep over a batch gives."""

    image: Tensor  # [T, B, 3, size, size], centred
    posterior: LatentState  # [T, B, ·]
    prior: Gaussian  # [T, B, stoch]


class WorldModel(nn.Module):
    """Encoder, RSSM, decoder, reward head and, for tasks that terminate, a continue head."""

    def __init__(self, model: Model, *, size: int, actions: int) -> None:
        super().__init__()
        self.settings = model
        self.encoder = Encoder(size=size, depth=model.depth)
        self.rssm = RSSM(
            embed=self.encoder.outputs,
            actions=actions,
            deter=model.deter,
            stoch=model.stoch,
            hidden=model.hidden,
            min_std=model.min_std,
            activation=model.activation,
        )
        feature = self.rssm.feature
        self.decoder = Decoder(feature=feature, size=size, depth=model.depth)
        self.reward = ScalarHead(feature=feature, units=model.reward_units, layers=model.reward_layers)
        self.continues = (
            ScalarHead(feature=feature, units=model.reward_units, layers=model.reward_layers)
            if model.continues
            else None
        )

    def centre(self, image: Tensor) -> Tensor:
        """Bytes as the numbers that the encoder reads and the decoder writes."""
        return centred(image, self.rssm.prior_out.weight.dtype)

    def embed(self, image: Tensor) -> Tensor:
        """Centred [..., 3, size, size] → [..., hidden]: the encoder, and the RSSM's projection out of its loop."""
        projected: Tensor = self.rssm.embed(self.encoder(image))
        return projected

    def step(self, state: LatentState, action: Tensor, embed: Tensor, is_first: Tensor, noise: Tensor) -> LatentState:
        """One observed step; ``is_first`` [B] clears the state and the action of the rows where an episode begins."""
        keep = (~is_first).to(action.dtype).unsqueeze(-1)
        return self.rssm.correct(state.map(lambda part: part * keep), action * keep, embed, noise)

    def observe(self, batch: Batch, noise: Tensor) -> Observed:
        """One forward sweep: posteriors z̃ and priors ẑ of every step."""
        image = self.centre(batch.observation)
        embed = self.embed(image)
        state = self.rssm.initial(embed[0])
        states = []
        for t in range(len(embed)):
            state = self.step(state, batch.action[t], embed[t], batch.is_first[t], noise[t])
            states.append(state)
        posterior = stack(states)
        return Observed(image, posterior, self.rssm.prior(posterior.deter))

    def losses(self, batch: Batch, observed: Observed) -> dict[str, Tensor]:
        """The forward terms by name, weighted once, and the unclamped KL in nats."""
        settings, feature = self.settings, observed.posterior.feature
        kl, nats = kl_with_free_nats(observed.posterior.gaussian, observed.prior, free_nats=settings.free_nats)
        terms = {
            "image": settings.observation_scale * image_loss(self.decoder(feature), observed.image).mean(),
            "reward": settings.reward_scale * unit_nll(self.reward(feature), batch.reward).mean(),
            "kl": settings.kl_scale * kl,
        }
        if self.continues is not None:
            terms["continues"] = continue_loss(self.continues(feature), batch.continues)
        return {**terms, "nats": nats.detach()}

    def discount(self, feature: Tensor, gamma: float) -> Tensor:
        """γ times the probability that the episode goes on: [..., F] → [...]."""
        if self.continues is None:
            return torch.full_like(feature[..., 0], gamma)
        return gamma * torch.sigmoid(self.continues(feature))
