"""Facts about the machine and the moment that a measurement belongs to."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def machine_facts(*packages: str) -> dict[str, object]:
    """Commit, processor, cores, versions of these packages, the time, and how busy the machine was just before."""
    return {
        "commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_of_the_last_minute": round(os.getloadavg()[0], 1),
        "niceness": os.nice(0),
    }


def _commit() -> str:
    """The code that was measured; a trailing ``+`` says that it had changes which are not committed."""
    described = subprocess.run(["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True, check=True)
    return described.stdout.strip()


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
