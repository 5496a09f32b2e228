"""All randomness of one update, drawn beforehand: an update is a pure function of weights, batch and noise."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ccwm.ops.ranks import own_part
from ccwm.seeds import named_seed


class Noise(NamedTuple):
    """Standard normal draws, and the starts of the dreams; of several ranks, each has its own columns and dreams."""

    posterior: Tensor  # [T, B, stoch]
    start: Tensor  # [N] int64, indices into the T·B posteriors of the whole batch, the same on every rank
    dream: Tensor  # [H, N, stoch]
    action: Tensor  # [H, N, A]
    retraced: Tensor  # [K, samples, T − K, B, stoch]; empty where nothing is retraced


def draw_noise(
    seed: int,
    update: int,
    *,
    like: Tensor,
    length: int,
    batch: int,
    stoch: int,
    actions: int,
    starts: int | None,
    horizon: int,
    retrace_horizon: int,
    retrace_samples: int,
) -> Noise:
    """The noise of update ``update``: a function of (seed, update), with the dtype and device of ``like``.

    Retracing draws from a stream of its own, so that Dreamer and CCWM share all other draws. Every rank draws the noise
    of the whole batch and keeps its part, so that an update does not depend on how many share it.
    """

    def stream(name: str) -> torch.Generator:
        return torch.Generator(like.device).manual_seed(named_seed("update", seed, update, name))

    def normal(generator: torch.Generator, *shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)

    learning, retracing = stream("learning"), stream("retracing")
    count = min(starts or length * batch, length * batch)
    if count < length * batch:
        start = torch.randperm(length * batch, generator=learning, device=like.device)[:count]
    else:
        start = torch.arange(length * batch, device=like.device)
    chains, columns, dreams = max(length - retrace_horizon, 0), own_part(batch), own_part(count)
    return Noise(
        posterior=normal(learning, length, batch, stoch)[:, columns],
        start=start,
        dream=normal(learning, horizon, count, stoch)[:, dreams],
        action=normal(learning, horizon, count, actions)[:, dreams],
        retraced=normal(retracing, retrace_horizon, retrace_samples, chains, batch, stoch)[..., columns, :],
    )
