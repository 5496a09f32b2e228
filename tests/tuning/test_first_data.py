"""The random episodes of trials: the pipeline's where they fit, else collected once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tuning_project import make_settings

from ccwm.cells import Cell, settings_hash
from ccwm.tuning.first_data import first_episodes

TASK = "maze_two_rooms"


def test_episodes_are_collected_once_unless_the_pipeline_has_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = make_settings()
    place = first_episodes(settings, TASK, 0)
    assert place.parts[:3] == (".work", "tune", "data")
    manifest = place / "train" / "manifest.jsonl"
    assert len(manifest.read_text().splitlines()) == 2
    written = manifest.stat().st_mtime_ns
    assert first_episodes(settings, TASK, 0) == place
    assert manifest.stat().st_mtime_ns == written

    cell = Cell("collect", TASK, seed=0)
    place.rename(tmp_path / "moved")
    cell.data.parent.mkdir(parents=True)
    (tmp_path / "moved").rename(cell.data)
    cell.record.parent.mkdir(parents=True)
    cell.record.write_text(json.dumps({"settings_hash": settings_hash(settings, cell)}))
    assert first_episodes(settings, TASK, 0) == cell.data
    cell.record.write_text(json.dumps({"settings_hash": "other"}))
    assert first_episodes(settings, TASK, 0) == place
    cell.record.unlink()  # it is no output of DVC, so that it may be missing
    assert first_episodes(settings, TASK, 0) == place
