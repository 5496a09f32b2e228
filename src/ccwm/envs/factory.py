"""From a task's name to its environment."""

from __future__ import annotations

from ccwm.envs.change import UNCHANGED, Change
from ccwm.envs.pixels import PixelEnv
from ccwm.envs.tasks import MAZE_TASKS, SUITE_TASKS, UnknownTask, check_task, needs_gl
from ccwm.envs.world import World

__all__ = ["UnknownTask", "check_task", "make_env", "needs_gl"]


def make_env(
    task: str, *, size: int, action_repeat: int, time_limit: int, quality: str = "full", change: Change = UNCHANGED
) -> PixelEnv:
    """The environment of a task: images [size, size, 3] uint8, actions [A] in [-1, 1], time limit in frames."""
    check_task(task)
    world = _make_world(task, size=size, quality=quality, change=change)
    return PixelEnv(world, size=size, action_repeat=action_repeat, time_limit=time_limit, reward_factor=change.reward)


def _make_world(task: str, *, size: int, quality: str, change: Change) -> World:
    # Each simulator is imported only by who plays in it: a maze must run where MuJoCo finds no GL.
    if task in SUITE_TASKS:
        from ccwm.envs.dmc import SuiteWorld

        return SuiteWorld(*SUITE_TASKS[task], size=size, quality=quality, change=change)
    if task in MAZE_TASKS:
        from ccwm.envs.maze import MazeWorld

        return MazeWorld(MAZE_TASKS[task], size=size, change=change)
    from ccwm.envs.adapters import GymWorld

    return GymWorld(task, size=size, change=change)
