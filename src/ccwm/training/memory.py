"""Keeping freed memory for the next update."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""The options of glibc's mallopt, as its malloc.h numbers them."""


def keep_freed_memory() -> bool:
    """Let glibc keep large freed buffers, where it would give each back and fault it in again at every update.

    False where the C library has no such setting.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    limits = {M_MMAP_THRESHOLD: 1 << 30, M_TRIM_THRESHOLD: (1 << 31) - 1, M_TOP_PAD: 64 << 20}
    return all(mallopt(option, value) == 1 for option, value in limits.items())
