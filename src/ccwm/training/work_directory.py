"""Where a run works until it is finished."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ccwm.cells import settings_hash
from ccwm.errors import UserError
from ccwm.settings.schema import Settings

SOURCES = ("config.py", "structs.py", "seeds.py", "ops", "losses", "nets", "envs", "data", "agent", "training")
"""What decides the bits of a run: a checkpoint made by other code is not gone on from."""


def work_directory(settings: Settings, *, task: str, variant: str, seed: int, data: Path) -> Path:
    """`.work/train/<task>/<variant>/<seed>/<hash>`: another directory for other settings, other code or other data."""
    manifest = data / "train" / "manifest.jsonl"
    if not manifest.is_file():
        raise FileNotFoundError(f"{data} holds no random episodes: run `dvc repro collect` first")
    key = hashlib.sha256(settings_hash(settings, "train", task=task, variant=variant, seed=seed).encode())
    key.update(manifest.read_bytes())
    root = Path(__file__).parent.parent
    for source in SOURCES:
        for path in sorted((root / source).rglob("*.py")) or [root / source]:
            key.update(path.read_bytes())
    return Path(".work") / "train" / task / variant / str(seed) / key.hexdigest()[:12]


class WorkDirectoryBusy(UserError, RuntimeError):
    """Another process trains in this work directory."""


@contextmanager
def exclusive(work: Path) -> Iterator[None]:
    """Hold the work directory, or refuse at once, naming the process that holds it."""
    work.mkdir(parents=True, exist_ok=True)
    holder = work / "holder"
    lock = FileLock(work / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        name = holder.read_text() if holder.exists() else "an unknown process"
        raise WorkDirectoryBusy(f"{work} is in use by {name}; wait for it or end it, then run again") from None
    try:
        holder.write_text(f"process {os.getpid()}")
        yield
    finally:
        lock.release()
