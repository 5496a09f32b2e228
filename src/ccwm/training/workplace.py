"""Where a run works until it is finished."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ccwm.config import Settings
from ccwm.params import settings_hash

SOURCES = ("config.py", "structs.py", "ops", "losses", "nets", "envs", "data", "agent", "training")
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
