"""From a task's name to its environment."""

import subprocess
import sys

import pytest
from small_env import small

from ccwm.envs.adapters import GymWorld
from ccwm.envs.change import Change
from ccwm.envs.dmc import SuiteWorld
from ccwm.envs.maze import MazeWorld
from ccwm.errors import UserError


def test_each_name_finds_its_kind_of_world():
    for task, kind in {"maze_pit": MazeWorld, "cartpole_balance": SuiteWorld, "gym:Pendulum-v1": GymWorld}.items():
        env = small(task, size=64, change=Change(reward=3.0))
        assert isinstance(env.world, kind)
        assert (env.observation_space.shape, env.reward_factor) == ((64, 64, 3), 3.0)
        env.close()
    with pytest.raises(UserError, match="'maze_pits'"):
        small("maze_pits")


def test_a_maze_needs_no_simulator():
    code = (
        "import sys; from ccwm.envs.factory import make_env; from ccwm.settings.agent import Env\n"
        "make_env('maze_pit', Env(size=32)).reset(seed=0)\n"
        "raise SystemExit(bool({'mujoco', 'dm_control', 'torch'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
