"""One seed of a trial, trained as the train stage would train it, and the random episodes that it begins with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tuning_project import STUDY, Project, make_settings

from ccwm.cells import Cell, settings_hash
from ccwm.training.history import Row
from ccwm.training.signals import Interrupted
from ccwm.tuning.runs import Runs
from ccwm.tuning.trial_runner import Attempt, TrialRunner, first_episodes

TASK = "maze_two_rooms"
POINT = {"truncation.threshold": 0.1, "truncation.window": 3, "truncation.lookback": 1}


def test_a_seed_resumes_from_its_checkpoint_with_its_whole_curve(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    runner = TrialRunner(make_settings(), Runs(make_settings(), "0" * 32))
    curves: list[list[Row]] = []

    def interrupt(curve: list[Row]) -> None:
        curves.append(list(curve))
        if len(curve) == 3:
            raise Interrupted(15)

    attempt = Attempt(POINT, 4, fresh=False)
    with pytest.raises(Interrupted):
        runner.train_seed(attempt, 0, report=interrupt, show=lambda _: None)
    assert len(project.checkpoints()) > 0
    value = runner.train_seed(attempt, 0, report=lambda curve: curves.append(list(curve)), show=lambda _: None)
    assert [len(curve) for curve in curves[:3]] == [1, 2, 3]
    resumed = curves[3]
    shared = len(resumed)
    assert shared in (2, 3)  # the earlier points come from the checkpoint, the last one was just measured
    assert [row["env_steps"] for row in resumed] == [row["env_steps"] for row in curves[2][:shared]]
    assert [row["return_mean"] for row in resumed] == [row["return_mean"] for row in curves[2][:shared]]

    again = TrialRunner(make_settings(), Runs(make_settings(), "1" * 32))
    assert again.train_seed(attempt, 0, report=lambda _: None, show=lambda _: None) == value  # without interruption
    work = project.root / ".work" / "tune" / STUDY
    assert not list(work.glob("work/trial-4/*"))
    assert (work / "agents" / "trial-4" / "seed-0").is_dir()
    runner.keep_agents_of({3})
    assert not (work / "agents" / "trial-4").exists()


def test_agents_of_all_trials_stay_where_all_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = Path(".work/tune") / STUDY / "agents" / "trial-4"
    kept.mkdir(parents=True)
    settings = make_settings(keep="all")
    TrialRunner(settings, Runs(settings, "0" * 32)).keep_agents_of(set())
    assert kept.exists()
    shutil.rmtree(kept)


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
