"""Playing episodes: how steps are aligned, and worker processes that are killed for real."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rollout_envs import Counting

from ccwm.agents.policy import RandomPolicy
from ccwm.envs.factory import make_env
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.settings.agent import Env
from ccwm.training.rollouts import Rollout, play_episode, play_episodes

ENV = Env(size=32, action_repeat=2, time_limit=20, render_quality="fast")
MAZE = "maze_two_rooms"
SEEDS = [3, 4, 5]


class Rising:
    """Acts 0.1, 0.2, 0.3 …"""

    def reset(self, seed: int) -> None:
        self.step = 0

    def act(self, observation: np.ndarray) -> np.ndarray:
        self.step += 1
        return np.full(2, self.step / 10, np.float32)


def played(task: str, seeds: Sequence[int] = SEEDS, *, workers: int = 1) -> list[Rollout]:
    return list(play_episodes(task, ENV, RandomPolicy, seeds, workers=workers))


def assert_same(left: Sequence[Rollout], right: Sequence[Rollout]) -> None:
    for one, other in zip(left, right, strict=True):
        assert one[1:] == other[1:]
        for name in Episode._fields:
            np.testing.assert_array_equal(
                getattr(one.episode, name), getattr(other.episode, name), strict=True, err_msg=name
            )


def running(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pids: Sequence[int], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while any(map(running, pids)):
        assert time.monotonic() < deadline, pids
        time.sleep(0.02)


def wait_for_pids(folder: Path, count: int) -> list[int]:
    """The processes in which Slow stands."""
    deadline = time.monotonic() + 60
    while len(found := list(folder.glob("pid-*"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [int(path.name.removeprefix("pid-")) for path in found]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that this process and its workers share."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_action_t_led_to_observation_t_and_reward_t() -> None:
    rollout = play_episode(Counting(3), Rising(), 0)
    episode = rollout.episode
    assert episode.action[:, 0].tolist() == pytest.approx([0, 0.1, 0.2, 0.3])
    assert episode.observation[:, 0, 0, 0].tolist() == [0, 10, 20, 30]
    assert episode.reward.tolist() == pytest.approx([0, 1, 2, 3])
    assert episode.is_first.tolist() == [True, False, False, False]
    assert episode.irreversible.tolist() == [False, False, False, True]
    assert {field.dtype for field in (episode.action, episode.reward, episode.continues)} == {np.dtype(np.float32)}
    assert (rollout.frames, rollout.success) == (6, True)
    assert rollout.total == pytest.approx(6)


@pytest.mark.parametrize(("terminates", "last"), [(True, 0.0), (False, 1.0)])
def test_continues_is_0_only_on_termination(terminates: bool, last: float) -> None:
    rollout = play_episode(Counting(2, terminates=terminates), Rising(), 0)
    assert rollout.episode.continues.tolist() == [1.0, 1.0, last]


def test_what_between_raises_abandons_the_episode() -> None:
    env = Counting(5)

    def stop_before_the_third() -> None:
        if env.taken == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        play_episode(env, Rising(), 0, between=stop_before_the_third)
    assert env.taken == 2


def test_an_episode_is_a_function_of_its_seed() -> None:
    env, policy = make_env(MAZE, ENV), RandomPolicy(2)
    first = [play_episode(env, policy, seed) for seed in SEEDS]
    assert_same(played(MAZE), first)
    assert_same([play_episode(env, policy, seed) for seed in reversed(SEEDS)], first[::-1])
    assert (first[0].episode.action != first[1].episode.action).any()


@pytest.mark.slow
@pytest.mark.parametrize("task", [MAZE, "cartpole_balance"])
def test_more_workers_change_no_byte(task: str) -> None:
    """The fast test of it is below, with a worker that dies, and in test_collect."""
    assert_same(played(task, workers=3), played(task))


def test_a_worker_that_dies_is_replayed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    again = played("rollout_envs:DiesOnce", workers=2)
    assert (folder / "died").exists()
    assert "SIGKILL: restart 1" in caplog.text
    assert_same(again, played("rollout_envs:DiesOnce"))


def test_a_worker_that_dies_again_and_again_is_a_user_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccwm.training.rollouts.RESTARTS", 1)
    with pytest.raises(UserError, match="2 times, the last time with exit code 7") as error:
        played("rollout_envs:DiesAlways", SEEDS[:2], workers=2)
    assert "collect.workers" in error.value.hint
    assert 2 <= len((folder / "died").read_text()) <= 4  # at least one worker of each start


def test_what_an_environment_raises_is_told_and_not_retried(folder: Path) -> None:
    with pytest.raises(RuntimeError, match="TwoArguments: 1 is not 2"):
        played("rollout_envs:Raises", SEEDS[:2], workers=2)
    assert len((folder / "raised").read_text()) <= 2  # once for each seed


def test_a_user_error_stays_one_and_workers_inherit_one_thread_and_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="'maze_two_rooms'"):
        played("maze_tow_rooms", workers=2)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("LP_NUM_THREADS", raising=False)
    with pytest.raises(RuntimeError, match=r"ValueError: threads \['1', '1', '1'\], .* Ctrl-C survived"):
        played("rollout_envs:Tells", workers=2)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "LP_NUM_THREADS" not in os.environ
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_workers_need_no_torch() -> None:
    code = "import sys, ccwm.training.collect; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


ORPHANS = """
from ccwm.agents.policy import RandomPolicy
from ccwm.settings.agent import Env
from ccwm.training.rollouts import play_episodes

if __name__ == "__main__":
    list(play_episodes("rollout_envs:Slow", Env(size=32, time_limit=20), RandomPolicy, [1, 2], workers=2))
"""


@pytest.mark.parametrize("ended", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_workers_end_with_their_parent(folder: Path, ended: signal.Signals) -> None:
    (folder / "orphans.py").write_text(ORPHANS)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    parent = subprocess.Popen([sys.executable, "orphans.py"], env={**os.environ, "PYTHONPATH": path})
    try:
        workers = wait_for_pids(folder, 2)
        assert all(map(running, workers))
        parent.send_signal(ended)
        assert parent.wait(30) == -ended
        wait_until_gone(workers)
    finally:
        parent.kill()


def test_workers_end_when_nobody_wants_their_episodes(folder: Path) -> None:
    """As after a full disk: the first episode is there, the second will never end."""
    with contextlib.closing(play_episodes("rollout_envs:SlowAt4", ENV, RandomPolicy, SEEDS, workers=2)) as rollouts:
        next(rollouts)
        workers = wait_for_pids(folder, 1)
    wait_until_gone(workers, seconds=1)
