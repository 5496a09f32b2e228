"""What decides the bits of a result beside code and settings: processor, libraries and threads."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("numpy", "mujoco", "imageio-ffmpeg")
"""Libraries, torch apart, whose own code makes numbers, pixels or videos."""


def machine(threads: int | None) -> dict[str, str]:
    """The facts, by name, that a process with this many torch threads depends on, None for one without torch.

    Two machines are the same where all of them are.
    """
    facts = {"processor": _processor(), "python": platform.python_version()}
    facts |= {package: version(package) for package in PACKAGES}
    if threads is not None:
        import torch

        facts |= {
            "torch": torch.__version__,
            "threads": str(threads),
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        }
    return facts


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    """The processor's own name, where Linux names it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    names = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    parts = (names.get(key, "") for key in ("model name", "cpu family", "model", "stepping"))
    return "/".join([platform.machine(), *(part for part in parts if part)]) or platform.processor()
