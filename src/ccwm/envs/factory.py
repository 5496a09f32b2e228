"""From a task's name to its environment."""

from __future__ import annotations

from contextlib import nullcontext

from ccwm.envs.change import UNCHANGED, Change
from ccwm.envs.env import TaskEnv
from ccwm.envs.gl import simulator_without_gl
from ccwm.envs.tasks import MAZE_TASKS, SUITE_TASKS, check_task
from ccwm.envs.world import World
from ccwm.settings.agent import Env


def make_env(task: str, config: Env, *, change: Change = UNCHANGED) -> TaskEnv:
    """The environment of a task: observations as ``config`` says, actions [A] in [-1, 1], time limit in frames."""
    check_task(task)
    with nullcontext() if config.observation == "pixels" else simulator_without_gl():
        world = _make_world(task, config, change)
    return TaskEnv(world, config, reward_factor=change.reward)


def _make_world(task: str, config: Env, change: Change) -> World:
    # Each simulator is imported only by who plays in it: a maze must run where MuJoCo finds no GL.
    if task in SUITE_TASKS:
        from ccwm.envs.dmc import SuiteWorld

        return SuiteWorld(*SUITE_TASKS[task], size=config.size, quality=config.render_quality, change=change)
    if task in MAZE_TASKS:
        from ccwm.envs.maze import MazeWorld

        return MazeWorld(MAZE_TASKS[task], size=config.size, change=change)
    from ccwm.envs.adapters import GymWorld

    return GymWorld(task, size=config.size, change=change)
