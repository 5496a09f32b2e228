"""A world on a line, where a step back is exact and every distance can be worked out by hand."""

from types import SimpleNamespace

import torch
from torch import nn

from ccwm.agents.retracing import SharedRetracing
from ccwm.ops.gaussian import unit_nll
from ccwm.ops.scalars import UnitGaussian
from ccwm.settings.agent import Model, Retrace
from ccwm.structs import Gaussian, LatentState


class Line:
    """A step adds the action and the noise to where one is; the reward is the place, and so is what is seen."""

    def __init__(self, **settings):
        self.settings = Model(free_nats=settings.pop("free_nats", 0.0), **settings)
        self.rssm = SimpleNamespace(
            advance=lambda deter, stoch, action: stoch + action,
            prior=lambda place: Gaussian(place, torch.ones_like(place)),
        )

    def predict(self, state, action, noise):
        place = state.stoch + action + noise
        return LatentState(state.deter, place, place, torch.ones_like(place))

    def reward(self, feature):
        return UnitGaussian(feature[..., 0])

    def reconstruction(self, feature, target):
        return unit_nll(feature[..., :1], target).sum(-1)


STANDING = SimpleNamespace(greedy=lambda feature: torch.zeros_like(feature[..., :1]))
"""An actor that does nothing."""


class Back(nn.Module):
    """The action that leads back, or a share of the way."""

    def __init__(self, share=1.0):
        super().__init__()
        self.share = share

    def forward(self, later, earlier):
        return self.share * (earlier - later)[..., :1]


class Stay(nn.Module):
    """No action at all."""

    def forward(self, later, earlier):
        return torch.zeros_like(later[..., :1])


def on_the_line(*places):
    """Posteriors [T, 1, 1] at these places, which a gradient can reach."""
    stoch = torch.tensor(places).reshape(-1, 1, 1).requires_grad_()
    return LatentState(torch.zeros_like(stoch), stoch, stoch, torch.ones_like(stoch))


def observed_on(posterior, *, prior=None, target=None):
    """What is observed there: priors that agree with the posteriors, and targets at their places, or others."""
    means, targets = (
        posterior.mean.detach() if places is None else torch.tensor(places).reshape(-1, 1, 1)
        for places in (prior, target)
    )
    return SimpleNamespace(posterior=posterior, prior=Gaussian(means, torch.ones_like(means)), target=targets)


def retracing(reverse, **settings):
    """Retracing with these settings and a reverse-action network that is given; γ = ½."""
    module = SharedRetracing(Retrace(**settings), Model(), feature=2, actions=1, discount=0.5)
    module.reverse = reverse
    return module


def still(horizon, length, *, samples=1):
    return torch.zeros(horizon, samples, length - horizon, 1, 1)


def line_loss(
    posterior, noise, *, reverse=None, kept=None, reset=None, prior=None, target=None, model=None, loss="l2", **settings
):
    """The retrace loss on the line, with 1s and 0s for what is kept and where an episode begins."""
    length = len(posterior.stoch)
    flags = [torch.tensor([int(flag) for flag in text], dtype=torch.bool).unsqueeze(1)
             for text in (kept or "1" * length, reset or "0" * length)]  # fmt: skip
    observed = observed_on(posterior, prior=prior, target=target)
    module = retracing(reverse or Stay(), loss=loss, horizon=noise.shape[0], samples=noise.shape[1], **settings)
    return module.loss(flags[1], observed, flags[0], model or Line(), STANDING, noise)
