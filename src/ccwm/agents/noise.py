"""All randomness of one update, drawn beforehand: an update is a pure function of weights, batch and noise."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ccwm.agents.distributed import own_rows, world_size
from ccwm.seeds import named_seed
from ccwm.settings.agent import AgentConfig
from ccwm.structs import Batch


class Noise(NamedTuple):
    """Standard normal draws, and where imagination starts, for this rank's B windows and N = starts · B rollouts."""

    posterior: Tensor  # [T, B, stoch]
    start: Tensor  # [starts, B] int64, times of the posteriors from which to imagine
    imagined: Tensor  # [H, N, stoch]
    action: Tensor  # [H, N, A]
    stretch: int  # where the retraced stretch of each window begins
    retraced: Tensor  # [K, samples, L − K, B, stoch] with L the stretch's length; empty where nothing is retraced


def draw_noise(seed: int, update: int, batch: Batch, config: AgentConfig) -> Noise:
    """The noise of update ``update``: a function of (seed, update), with the dtype and device of the batch.

    Retracing draws from a stream of its own, so that Dreamer and CCWM share all other draws. Every rank draws for the
    whole batch and keeps its columns, so that an update does not depend on how many ranks share it.
    """
    like, stoch, actions = batch.reward, config.model.stoch, batch.action.shape[-1]
    length, columns = like.shape[0], like.shape[1] * world_size()
    horizon, starts, samples = 0, 0, 1  # SAC imagines nothing, and its reversed model draws nothing
    if config.agent.kind == "world_model":
        horizon, starts = config.actor_critic.horizon, config.actor_critic.starts_per_window or length
        samples = config.retrace.samples
    chain = config.retrace.horizon if config.retrace.weight > 0 else 0
    stretch = (config.retrace.length if chain else None) or length  # unchecked where nothing is retraced
    own = own_rows(columns)

    def stream(name: str) -> torch.Generator:
        return torch.Generator(like.device).manual_seed(named_seed("update", seed, update, name))

    def normal(generator: torch.Generator, *shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)

    learning, retracing = stream("learning"), stream("retracing")
    if starts < length:
        order = torch.rand(length, columns, generator=learning, device=like.device).argsort(0)[:starts]
    else:
        order = torch.arange(length, device=like.device).unsqueeze(1).expand(-1, columns)
    return Noise(
        posterior=normal(learning, length, columns, stoch)[:, own],
        start=order[:, own],
        imagined=normal(learning, horizon, starts, columns, stoch)[:, :, own].flatten(1, 2),
        action=normal(learning, horizon, starts, columns, actions)[:, :, own].flatten(1, 2),
        stretch=named_seed("update", seed, update, "stretch") % (length - stretch + 1),
        retraced=normal(retracing, chain, samples, max(stretch - chain, 0), columns, stoch)[..., own, :],
    )


class Virtual(NamedTuple):
    """The random draws of an update of PlayVirtual."""

    actions: Tensor  # [K, M, B, A], uniform in [−1, 1]
    offsets: Tensor  # [2, B, 2] int64 in [0, 2 · shift], the two augmentations of each window


def draw_virtual(seed: int, update: int, batch: Batch, config: AgentConfig) -> Virtual:
    """The virtual actions and shifts of update ``update``: a function of (seed, update)."""
    settings, like = config.playvirtual, batch.action
    generator = torch.Generator(like.device).manual_seed(named_seed("update", seed, update, "virtual"))
    shape, moved = (settings.length, settings.sequences, *like.shape[1:]), (2, like.shape[1], 2)
    return Virtual(
        actions=2 * torch.rand(shape, generator=generator, dtype=like.dtype, device=like.device) - 1,
        offsets=torch.randint(2 * settings.shift + 1, moved, generator=generator, device=like.device),
    )
