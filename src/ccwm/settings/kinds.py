"""What an agent of each kind needs of its settings, and which of them it does not read."""

from __future__ import annotations

from typing import Any

ONE_DEVICE = {
    "trainer.devices": (1, "its updates are made by one device"),
    "trainer.precision": ("32-true", "stable-baselines3 computes in it"),
}
NEEDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "world_model": {},
    "sac": {
        "env.observation": ("state", "it learns from states"),
        "retrace.weight": (0.0, "it has no world model to retrace with"),
        "truncation.mode": ("none", "it retraces nothing"),
        **ONE_DEVICE,
    },
    "model_free": {
        "retrace.loss": (
            *("bisimulation", "l2", "reconstruction", "metric"),
            "a point has no spread, and there is no ρ",
        ),
        **ONE_DEVICE,
    },
    "playvirtual": {"truncation.mode": ("none", "its actions are virtual, and none is known to be lost"), **ONE_DEVICE},
}
"""The values that a kind can do with, and why, by ``agent.kind`` and key."""
UNREAD: dict[str, tuple[str, ...]] = {
    "world_model": ("sac", "playvirtual"),
    "sac": ("model", "retrace", "truncation", "actor_critic", "playvirtual", "optimiser", "train.length"),
    "model_free": (
        *("actor_critic", "playvirtual", "optimiser.actor_lr", "optimiser.critic_lr"),
        *("retrace.samples", "retrace.reverse_action"),
    ),
    "playvirtual": (
        *("retrace", "truncation", "actor_critic", "optimiser.actor_lr", "optimiser.critic_lr", "train.length"),
        *("model.deter", "model.stoch", "model.hidden", "model.min_std", "model.reward_layers", "model.reward_units"),
        *("model.reward_head", "model.bins", "model.bin_limit", "model.zero_heads", "model.free_nats"),
        *("model.kl_dynamics", "model.kl_representation", "model.observation_scale", "model.reward_scale"),
        "model.continues",
    ),
}
"""Sections and keys without an effect, by ``agent.kind``."""
SWITCHES = ("retrace.weight", "truncation.mode")
"""Keys of such sections that a variant may still name, to turn off what its base turns on."""


def is_unread(kind: str, key: str) -> bool:
    """Whether a setting, as `section.field`, has no effect on agents of this kind."""
    section = key.partition(".")[0]
    return key not in SWITCHES and (section in UNREAD[kind] or key in UNREAD[kind])
