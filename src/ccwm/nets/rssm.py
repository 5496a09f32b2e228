"""The recurrent state-space model: one step of prediction, one of correction."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ccwm.nets.mlp import ACTIVATIONS, NORM_EPS
from ccwm.structs import Gaussian, LatentState


class GaussianHead(nn.Linear):
    """A diagonal Gaussian with std = softplus(·) + ``min_std``."""

    def __init__(self, inputs: int, outputs: int, *, min_std: float) -> None:
        super().__init__(inputs, 2 * outputs)
        self.min_std = min_std

    def forward(self, hidden: Tensor) -> Gaussian:  # type: ignore[override]
        """[..., inputs] → [..., outputs]."""
        mean, std = super().forward(hidden).chunk(2, -1)
        return Gaussian(mean, functional.softplus(std) + self.min_std)


class RSSM(nn.Module):
    """q_ψ1 (the prior, ``predict``) and q_ψ2 (the posterior, ``correct``) over latent states."""

    def __init__(
        self,
        *,
        embed: int,
        actions: int,
        deter: int,
        stoch: int,
        hidden: int,
        min_std: float,
        activation: str,
        norm: bool = False,
    ) -> None:
        super().__init__()
        self.deter, self.stoch = deter, stoch
        self.enter_act, self.prior_act, self.posterior_act = (
            nn.Sequential(*([nn.LayerNorm(hidden, eps=NORM_EPS)] if norm else []), ACTIVATIONS[activation]())
            for _ in range(3)
        )
        self.enter = nn.Linear(stoch + actions, hidden)
        self.cell = nn.GRUCell(hidden, deter)
        self.prior_hidden = nn.Linear(deter, hidden)
        self.prior_out = GaussianHead(hidden, stoch, min_std=min_std)
        self.embed = nn.Linear(embed, hidden)
        self.posterior_hidden = nn.Linear(deter, hidden, bias=False)  # its bias is that of ``embed``
        self.posterior_out = GaussianHead(hidden, stoch, min_std=min_std)

    @property
    def feature(self) -> int:
        """Width F of a state's feature."""
        return self.deter + self.stoch

    def initial(self, like: Tensor) -> LatentState:
        """The zero state, [B, ·], with the dtype and device of ``like`` [B, ·]."""
        zeros = like.new_zeros(len(like), self.stoch)
        return LatentState(like.new_zeros(len(like), self.deter), zeros, zeros, zeros)

    def advance(self, deter: Tensor, stoch: Tensor, action: Tensor) -> Tensor:
        """One step of the GRU: [N, deter], [N, stoch], [N, A] → [N, deter]."""
        out: Tensor = self.cell(self.enter_act(self.enter(torch.cat([stoch, action], -1))), deter)
        return out

    def prior(self, deter: Tensor) -> Gaussian:
        """q_ψ1 given the GRU's new state: [..., deter] → [..., stoch]."""
        prior: Gaussian = self.prior_out(self.prior_act(self.prior_hidden(deter)))
        return prior

    def predict(self, state: LatentState, action: Tensor, noise: Tensor) -> LatentState:
        """ẑ_{t+1} ~ q_ψ1(· | z_t, a_t): [N, ·], [N, A], [N, stoch] → [N, ·]."""
        deter = self.advance(state.deter, state.stoch, action)
        prior = self.prior(deter)
        return LatentState(deter, prior.sample(noise), *prior)

    def correct(self, state: LatentState, action: Tensor, embed: Tensor, noise: Tensor) -> LatentState:
        """z̃_{t+1} ~ q_ψ2(· | z_t, a_t, e_{t+1}) with e projected by ``embed``: [N, ·] → [N, ·]."""
        deter = self.advance(state.deter, state.stoch, action)
        posterior: Gaussian = self.posterior_out(self.posterior_act(self.posterior_hidden(deter) + embed))
        return LatentState(deter, posterior.sample(noise), *posterior)
