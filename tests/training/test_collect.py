"""Collecting random episodes: what is stored, for any number of workers, and after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ccwm.errors import UserError
from ccwm.files import published
from ccwm.replay.store import EpisodeStore
from ccwm.settings.agent import Env
from ccwm.training.collect import RandomReturn, check_collected, collect_random, summarise

ENV = Env(size=32, action_repeat=2, time_limit=20)
TASK = "maze_two_rooms"
KILLED = """
from pathlib import Path
from test_collect import ENV, publish

if __name__ == "__main__":
    publish(Path("data"), ENV.model_copy(update={"time_limit": 2000}), workers=2)
"""

WITHOUT_GL = """
from pathlib import Path
from test_collect import collect_states

if __name__ == "__main__":
    collect_states(Path("data"), workers=2)
"""


def collect_states(folder: Path, *, workers: int) -> None:
    env = Env(observation="state", size=32, action_repeat=2, time_limit=20)
    parts = {"train": 2}
    collect_random("walker_walk", folder, parts=parts, env=env, seed=0, advance=lambda: None, workers=workers)


def collect(folder: Path, *, workers: int = 1, env: Env = ENV, seed: int = 0) -> list[RandomReturn]:
    parts = {"train": 3, "heldout": 2}
    return collect_random(TASK, folder, parts=parts, env=env, seed=seed, advance=lambda: None, workers=workers)


def publish(data: Path, env: Env = ENV, *, workers: int = 1) -> None:
    """As the stage does."""
    with published(data) as folder:
        collect(folder, env=env, workers=workers)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_each_part_has_its_episodes_and_their_returns(tmp_path: Path) -> None:
    advanced: list[int] = []
    rows = collect_random(
        TASK, tmp_path, parts={"train": 3, "heldout": 2}, env=ENV, seed=0, advance=lambda: advanced.append(1)
    )
    assert [row[:2] for row in rows] == [("train", 0), ("train", 1), ("train", 2), ("heldout", 0), ("heldout", 1)]
    assert len(advanced) == 5
    for part, first in (("train", 0), ("heldout", 3)):
        store = EpisodeStore(tmp_path / part, read_only=True)
        assert [entry.steps for entry in store.entries] == [11] * len(store)  # 20 frames, two an action, and the reset
        for row, entry in zip(rows[first:], store.entries, strict=False):
            assert (row.length, row.frames, row.total) == (10, 20, entry.episode_return)
    assert len({row.seed for row in rows}) == 5
    assert list(rows[0].row()) == ["part", "episode", "seed", "return", "length"]


def test_the_data_are_a_function_of_the_seed_and_not_of_the_workers(tmp_path: Path) -> None:
    rows = {workers: collect(tmp_path / str(workers), workers=workers) for workers in (1, 2)}
    assert rows[2] == rows[1]
    assert len(files(tmp_path / "1")) == 3 + 1 + 2 + 1
    assert files(tmp_path / "2") == files(tmp_path / "1")
    collect(tmp_path / "other", seed=1)
    assert files(tmp_path / "other") != files(tmp_path / "1")


def test_a_summary_by_hand() -> None:
    rows = [
        RandomReturn("train", 0, 1, total=2.0, length=10, frames=20),
        RandomReturn("train", 1, 2, total=4.0, length=5, frames=9),
        RandomReturn("heldout", 0, 3, total=6.0, length=7, frames=14),
    ]
    assert summarise(rows) == {
        "episodes": 2,
        "heldout": 1,
        "steps": 15,
        "env_steps": 29,
        "return_mean": 4.0,
        "return_sd": pytest.approx(2.0),  # (4 + 0 + 4) / 2
    }
    assert summarise(rows[:1])["return_sd"] == 0.0


def test_kill_9_leaves_whole_episodes_and_the_rerun_equals_a_clean_run(tmp_path: Path) -> None:
    publish(tmp_path / "clean")
    (tmp_path / "killed.py").write_text(KILLED)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    killed = subprocess.Popen([sys.executable, "killed.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    manifest = tmp_path / ".data.tmp" / "train" / "manifest.jsonl"
    while not manifest.exists() or manifest.read_bytes().count(b"\n") < 1:
        assert killed.poll() is None
        time.sleep(0.005)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    half = EpisodeStore(manifest.parent, read_only=True)
    assert (1 <= len(half) <= 3, half.damaged) == (True, 0)
    for index in range(len(half)):
        assert len(half.episode(index).reward) == 1001
    assert not (tmp_path / "data").exists()
    publish(tmp_path / "data")
    assert files(tmp_path / "data") == files(tmp_path / "clean")
    assert not (tmp_path / ".data.tmp").exists()


def test_states_of_mujoco_are_collected_where_there_is_no_gl(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(WITHOUT_GL)
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    env = os.environ | {"PYTHONPATH": paths, "MUJOCO_GL": "disabled"}
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=env, check=True)
    collect_states(tmp_path / "here", workers=1)
    assert files(tmp_path / "data") == files(tmp_path / "here")
    (entry, _) = EpisodeStore(tmp_path / "data" / "train", read_only=True).entries
    assert (entry.observation_shape, entry.observation_dtype) == ((24,), "float32")


@pytest.mark.parametrize("cut", ["line", "torn"])
def test_a_shorter_manifest_than_was_collected_is_refused(tmp_path: Path, cut: str) -> None:
    collect(tmp_path)
    check_collected(tmp_path / "train", 3)
    path = tmp_path / "train" / "manifest.jsonl"
    path.write_bytes(path.read_bytes()[:-1] if cut == "torn" else b"".join(path.read_bytes().splitlines(True)[:2]))
    assert len(EpisodeStore(tmp_path / "train", read_only=True)) == 2  # a store alone cannot tell
    with pytest.raises(UserError, match=r"manifest\.jsonl names 2 of the 3 episodes"):
        check_collected(tmp_path / "train", 3)
