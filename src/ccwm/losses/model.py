"""The forward terms: the negative free energy of the observations."""

from __future__ import annotations

import torch
from torch import Tensor

from ccwm.ops.gaussian import kl_divergence, unit_nll
from ccwm.structs import Gaussian


def observation_loss(decoded: Tensor, target: Tensor, *, axes: int) -> Tensor:
    """−log N(target; decoded, 1) without its constant, summed over the observation's axes, the last ones.   → [...]."""
    return unit_nll(decoded, target).sum(tuple(range(-axes, 0)))


def balanced_kl(posterior: Gaussian, prior: Gaussian, *, dynamics: float, representation: float) -> Tensor:
    """KL[posterior‖prior], its gradient scaled by ``dynamics`` into the prior, ``representation`` into the posterior.

    The same gradient as dynamics · KL[sg(posterior)‖prior] + representation · KL[posterior‖sg(prior)] at half the
    cost; with 1 and 1 it is the plain KL.   [..., D] → [...].
    """
    return kl_divergence(scale_gradient(posterior, representation), scale_gradient(prior, dynamics))


def scale_gradient(gaussian: Gaussian, scale: float) -> Gaussian:
    """The same distribution, with its gradient multiplied by ``scale``."""
    return gaussian if scale == 1 else Gaussian(*(torch.lerp(part.detach(), part, scale) for part in gaussian))
