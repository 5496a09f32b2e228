"""Which settings an agent of each kind does not read."""

from __future__ import annotations

UNREAD: dict[str, tuple[str, ...]] = {
    "world_model": ("sac",),
    "sac": ("model", "retrace", "truncation", "actor_critic", "optimiser", "train.length"),
}
"""Sections and keys without an effect, by ``agent.kind``."""
SWITCHES = ("retrace.weight", "truncation.mode")
"""Keys of such sections that a variant may still name, to turn off what its base turns on."""


def is_unread(kind: str, key: str) -> bool:
    """Whether a setting, as `section.field`, has no effect on agents of this kind."""
    section = key.partition(".")[0]
    return key not in SWITCHES and (section in UNREAD[kind] or key in UNREAD[kind])
