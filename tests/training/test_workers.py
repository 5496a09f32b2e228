"""Environments in worker processes: real processes, killed for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from training_project import TASK, Project, write_params

from ccwm.agents.policy import RandomPolicy
from ccwm.envs.factory import make_env
from ccwm.envs.vector import LaneEnvs, LocalLane
from ccwm.replay.store import EpisodeStore
from ccwm.settings.agent import Env
from ccwm.settings.schema import Render
from ccwm.structs import Episode
from ccwm.training.collect import collect_random
from ccwm.training.rollouts import Played, play
from ccwm.training.workers import WorkerDied, WorkerLane, make_envs

SETTINGS = {"size": 32, "action_repeat": 2, "time_limit": 40, "quality": "fast"}
SEEDS = [3, 4]
COLLECT = ("--task", TASK, "--seed", "0")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def alive(pid: int) -> bool:
    """Whether a process still runs; one that waits for its parent to take note does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 60
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"ccwm.training.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


def assert_same(left: list[Played], right: list[Played]) -> None:
    for one, other in zip(left, right, strict=True):
        assert one[1:] == other[1:]
        for name in Episode._fields:
            np.testing.assert_array_equal(getattr(one.episode, name), getattr(other.episode, name), name)


@pytest.mark.parametrize("task", [TASK, "cartpole_balance"])  # the latter draws with EGL in each process
def test_the_data_set_is_the_same_for_1_and_for_4_workers(task: str, tmp_path: Path) -> None:
    stores = {}
    for workers in (1, 4):
        rows = collect_random(
            task,
            tmp_path / str(workers),
            parts={"train": 4, "heldout": 2},  # six episodes: the last round leaves two workers waiting
            env=Env(size=32, action_repeat=2, time_limit=20),
            render=Render(quality="fast"),
            seed=0,
            advance=lambda: None,
            workers=workers,
        )
        stores[workers] = (rows, files(tmp_path / str(workers)))
    assert len(stores[1][1]) == 4 + 1 + 2 + 1
    assert stores[4] == stores[1]


def test_a_worker_that_dies_is_replaced_once_and_the_data_do_not_change() -> None:
    expected = play(make_envs(TASK, workers=1, **SETTINGS), RandomPolicy(2), SEEDS[:1])
    expected += play(make_envs(TASK, workers=1, **SETTINGS), RandomPolicy(2), SEEDS[1:])
    envs = make_envs(TASK, workers=2, **SETTINGS)
    first: WorkerLane = envs.lanes[0]  # type: ignore[assignment]
    steps, killed = 0, [first.pid]

    def kill_at(step: int) -> None:
        nonlocal steps
        steps += 1
        if steps == step:
            os.kill(first.pid, signal.SIGKILL)

    try:
        assert_same(play(envs, RandomPolicy(2), SEEDS, between=lambda: kill_at(7)), expected)
        assert first.pid not in killed
        killed.append(first.pid)
        with pytest.raises(WorkerDied, match=f"worker 0 of {TASK} died again: it was ended by signal 9"):
            play(envs, RandomPolicy(2), SEEDS, between=lambda: kill_at(30))
    finally:
        pids = [lane.pid for lane in envs.lanes]  # type: ignore[attr-defined]
        envs.close()
    assert gone([*killed, *pids])


def test_what_a_world_raises_is_told() -> None:
    envs = make_envs(TASK, workers=2, **SETTINGS)
    try:
        envs.reset(seed=SEEDS)
        with pytest.raises(WorkerDied, match=r"worker 1 .* died again: ValueError: the action .* outside \[-1, 1\]"):
            envs.step(np.array([[0, 0], [0, 1.5]], np.float32))
    finally:
        envs.close()
    with pytest.raises(WorkerDied, match=r"worker 0 .* died again: UnknownTask: unknown task 'maze_tow_rooms'"):
        make_envs("maze_tow_rooms", workers=2, **SETTINGS)


def test_environments_wait_when_their_episode_is_over() -> None:
    limits = (4, 6)
    worlds = [make_env(TASK, size=32, action_repeat=2, time_limit=limit) for limit in limits]
    envs = LaneEnvs([LocalLane(world) for world in worlds])
    assert envs.observation_space.shape == (2, 32, 32, 3)
    assert envs.action_space.shape == (2, 2)
    actions = np.ones((2, 2), np.float32)
    envs.reset(seed=SEEDS)
    told = [envs.step(actions) for _ in range(3)]
    assert [truncated.tolist() for _, _, _, truncated, _ in told] == [[False, False], [True, False], [True, True]]
    assert told[2][1][0] == 0
    assert told[2][1][1] > 0
    np.testing.assert_array_equal(told[2][0][0], told[1][0][0])
    assert told[2][4]["_frames"].tolist() == [False, True]
    envs.reset(seed=SEEDS[:1])
    assert envs.step(actions)[3].tolist() == [False, True]  # the second was not begun
    for wrong in ([], [1, 2, 3]):
        with pytest.raises(ValueError, match="2 environments take as many seeds at most"):
            envs.reset(seed=wrong)


def test_kill_9_of_collect_leaves_no_worker_and_nothing_half_written(collected: Project, tmp_path: Path) -> None:
    project = collected.copy(tmp_path / "project")
    changed = {"collect": {"workers": 4, "episodes": 40}, "env": {"time_limit": 400}}
    write_params(project.root / "params.yaml", changed)
    run = [sys.executable, "pipeline/collect.py", *COLLECT]
    killed = subprocess.Popen(run, cwd=project.root)
    begun = project.root / "data" / TASK / ".0.tmp" / "train"
    manifest = begun / "manifest.jsonl"  # an episode is there when its line is, which comes after its file
    while not manifest.exists() or manifest.read_bytes().count(b"\n") < 4:
        assert killed.poll() is None
        time.sleep(0.01)
    pids = workers_of(killed.pid)
    assert len(pids) == 4
    killed.kill()
    killed.wait()
    assert gone(pids)
    half = EpisodeStore(begun, read_only=True)
    assert (len(half) >= 4, half.damaged) == (True, 0)
    assert project.files("data") == collected.files("data"), "what was there before is there still"
    write_params(project.root / "params.yaml", {"collect": {"workers": 4}})
    subprocess.run(run, cwd=project.root, check=True)
    assert project.files("data", "results/collect") == collected.files("data", "results/collect")
