"""The random episodes that trials begin with: the pipeline's where they fit, else collected once by the same code."""

from __future__ import annotations

import json
from pathlib import Path

from filelock import FileLock

from ccwm.cells import WORK, Cell, settings_hash
from ccwm.files import published
from ccwm.progress import counter
from ccwm.settings.schema import Settings
from ccwm.training.collect import collect_random


def first_episodes(settings: Settings, task: str, seed: int) -> Path:
    """A directory whose `train` holds the random episodes of this task and seed under these settings."""
    cell = Cell("collect", task, seed=seed)
    fingerprint = settings_hash(settings, cell)
    if _is_whole(cell.data) and _recorded_hash(cell) == fingerprint:
        return cell.data
    place = WORK / "tune" / "data" / fingerprint
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        if not _is_whole(place):
            parts = {"train": settings.collect.episodes}
            with published(place) as folder, counter(f"random episodes, seed {seed}", parts["train"]) as advance:
                collect_random(task, folder, parts=parts, env=settings.env, seed=seed, advance=advance)
    return place


def _recorded_hash(cell: Cell) -> str | None:
    """The settings' hash in the record of the pipeline's collect stage, if there is a record."""
    found: str | None = json.loads(cell.record.read_text())["settings_hash"] if cell.record.is_file() else None
    return found


def _is_whole(data: Path) -> bool:
    return (data / "train" / "manifest.jsonl").is_file()
