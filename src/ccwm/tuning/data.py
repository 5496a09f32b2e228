"""The random episodes that trials begin with: the pipeline's where they fit, else collected once by the same code."""

from __future__ import annotations

import json
from pathlib import Path

from filelock import FileLock

from ccwm.cells import settings_hash
from ccwm.files import published
from ccwm.progress import counter
from ccwm.settings.schema import Settings
from ccwm.tracking.stage import WORK, Item
from ccwm.training.collect import collect_random


def first_episodes(settings: Settings, task: str, seed: int) -> Path:
    """A directory whose `train` holds the random episodes of this task and seed under these settings."""
    item = Item("collect", task, seed=seed)
    fingerprint = settings_hash(settings, "collect", task=task, variant="", seed=seed)
    if _collected_with(item) == fingerprint and _is_whole(item.data):
        return item.data
    place = WORK / "tune" / "data" / fingerprint
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        if not _is_whole(place):
            episodes = settings.collect.episodes
            with published(place) as folder, counter(f"random episodes, seed {seed}", episodes) as advance:
                collect_random(
                    task,
                    folder,
                    parts={"train": episodes},
                    env=settings.env,
                    render=settings.render,
                    seed=seed,
                    advance=advance,
                )
    return place


def _collected_with(item: Item) -> str | None:
    """The settings' hash in the record of the pipeline's collect stage."""
    record = item.results / "run.json"
    if not record.is_file():
        return None
    found: str | None = json.loads(record.read_text()).get("settings_hash")
    return found


def _is_whole(data: Path) -> bool:
    return (data / "train" / "manifest.jsonl").is_file()
