"""Seeds by name: a random stream is a function of what it is for, never of what was drawn before it."""

from __future__ import annotations

import hashlib


def named_seed(*parts: str | int) -> int:
    """A seed of 63 bits that is a function of its name alone, the same on every machine."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def episode_seed(*parts: str | int) -> int:
    """A seed that environments accept: 31 bits of ``named_seed``."""
    return named_seed(*parts) % 2**31


def collected_seed(seed: int, part: str, index: int) -> int:
    """The seed of a random episode that a study starts with, by its part (`train` or `heldout`) and number."""
    return episode_seed("collect", seed, part, index)
