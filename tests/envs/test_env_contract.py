"""What every world owes, on one world of each kind."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from ccwm.envs.change import UNCHANGED, Change
from ccwm.envs.env import Env
from ccwm.envs.factory import UnknownTask, check_task, make_env, needs_gl

KINDS = ["maze_one_way", "cartpole_balance", "gym:Pendulum-v1", "gym:LunarLander-v3"]
PLAY = """
import hashlib, sys
import numpy as np
from ccwm.envs.factory import make_env
for task in sys.argv[1:]:
    env = make_env(task, size=32, action_repeat=2, time_limit=40, quality="fast")
    actions = np.random.default_rng(0).uniform(-1, 1, (6, *env.action_space.shape)).astype(np.float32)
    digest = hashlib.sha256(env.reset(seed=5)[0].tobytes())
    for action in actions:
        image, reward, *_ = env.step(action)
        digest.update(image.tobytes() + repr(reward).encode())
    print(task, digest.hexdigest())
"""


def small(task: str, *, action_repeat: int = 2, time_limit: int = 40, change: Change = UNCHANGED) -> Env:
    env = make_env(
        task,
        size=32,
        action_repeat=action_repeat,
        time_limit=time_limit,
        quality="fast",
        change=change,
    )
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (32, 32, 3), np.uint8)
    return env


@pytest.mark.filterwarnings("ignore:The minimal resolution for an image is 36x36")  # of a network that is not ours
@pytest.mark.parametrize("task", KINDS)
def test_gymnasium_and_stable_baselines_accept_it(task: str):
    env = small(task)
    check_env(env, skip_render_check=True)
    sb3_check_env(env)


def test_the_same_seed_gives_the_same_pixels_in_another_process():
    runs = [
        subprocess.run([sys.executable, "-c", PLAY, *KINDS], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert [line.split()[0] for line in runs[0].splitlines() if line.split()[0] in KINDS] == KINDS
    assert runs[0] == runs[1]


@pytest.mark.parametrize("task", KINDS)
def test_a_seed_wipes_out_what_was_before_and_no_seed_goes_on(task: str):
    env = small(task)
    env.reset(seed=1)
    start = env.state()
    env.step(env.action_space.high)
    env.reset()
    assert not np.array_equal(env.state(), start)
    env.reset(seed=1)
    np.testing.assert_array_equal(env.state(), start)
    env.reset(seed=2)
    assert not np.array_equal(env.state(), start)


@pytest.mark.parametrize("task", KINDS)
def test_images_are_the_callers_own(task: str):
    env = small(task)
    first, _ = env.reset(seed=1)
    kept = first.copy()
    for _ in range(5):
        env.step(env.action_space.high)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("bad", [np.nan, 1.5, -1.01, np.inf])
def test_wild_actions_are_refused_by_name(bad: float):
    env = small("maze_open")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"the action \[.*\] has entries that are NaN or outside \[-1, 1\]"):
        env.step(np.array([0.0, bad], np.float32))
    with pytest.raises(ValueError, match=r"has shape \(3,\), this world takes \(2,\)"):
        env.step(np.zeros(3, np.float32))


def test_a_time_limit_truncates_in_the_middle_of_an_action():
    env = small("maze_open", action_repeat=3, time_limit=7)
    env.reset(seed=0)
    steps = [env.step(np.zeros(2, np.float32)) for _ in range(3)]
    assert [(terminated, truncated) for _, _, terminated, truncated, _ in steps] == [(False, False)] * 2 + [
        (False, True)
    ]
    assert [info["frames"] for *_, info in steps] == [3, 3, 1]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2, np.float32))
    env.reset()
    assert env.step(np.zeros(2, np.float32))[4]["frames"] == 3


def test_rewards_of_repeated_frames_add_up_and_are_scaled():
    still = np.zeros(2, np.float32)
    rewards = []
    for repeat, change in ((1, Change()), (4, Change()), (4, Change(reward=2.5))):
        env = small("maze_open", action_repeat=repeat, change=change)
        env.reset(seed=3)
        rewards.append(env.step(still)[1])
    assert rewards[0] > 0
    assert rewards[1] == pytest.approx(4 * rewards[0])
    assert rewards[2] == pytest.approx(10 * rewards[0])


def test_every_info_tells_reversibility_and_frames():
    for task in KINDS:
        env = small(task)
        assert env.reset(seed=0)[1] == {"irreversible": False, "frames": 0}
        info = env.step(env.action_space.sample())[4]
        assert (info["irreversible"], info["frames"]) == (False, 2)
        assert ("success" in info) == task.startswith("maze_")


@pytest.mark.parametrize(
    ("task", "guess"),
    [("wlker_walk", "walker_walk"), ("maze_tworooms", "maze_two_rooms"), ("gym:Pendulm-v1", "gym:Pendulum-v1")],
)
def test_unknown_tasks_are_refused_with_the_nearest_guess(task: str, guess: str):
    with pytest.raises(UnknownTask, match=f"unknown task '{task}'.*Did you mean '{guess}'.*Valid: maze_"):
        check_task(task)


@pytest.mark.parametrize("task", ["", ":", "no_such_module:World", "walker", "gym:"])
def test_names_without_a_world_are_refused(task: str):
    with pytest.raises(UnknownTask, match="Valid: maze_"):
        make_env(task, size=32, action_repeat=1, time_limit=10)


def test_names_are_checked_without_a_simulator():
    code = (
        "import sys; from ccwm.envs.factory import check_task, make_env\n"
        "check_task('walker_walk'); make_env('maze_pit', size=32, action_repeat=1, time_limit=10).reset(seed=0)\n"
        "raise SystemExit('mujoco' in sys.modules or 'dm_control' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_only_mujoco_worlds_need_gl():
    assert [needs_gl(t) for t in ("walker_walk", "gym:HalfCheetah-v5", "gym:Pendulum-v1", "maze_pit")] == [
        True,
        True,
        False,
        False,
    ]
