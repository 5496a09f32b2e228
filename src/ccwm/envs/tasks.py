"""The names of all worlds, known without importing a simulator."""

from __future__ import annotations

import difflib
import importlib.util

import gymnasium

from ccwm.envs.layouts import LAYOUTS
from ccwm.errors import UserError
from ccwm.settings.agent import Env

SUITE: dict[str, tuple[str, ...]] = {
    "acrobot": ("swingup", "swingup_sparse"),
    "ball_in_cup": ("catch",),
    "cartpole": ("balance", "balance_sparse", "swingup", "swingup_sparse", "two_poles", "three_poles"),
    "cheetah": ("run",),
    "dog": ("stand", "walk", "trot", "run", "fetch"),
    "finger": ("spin", "turn_easy", "turn_hard"),
    "fish": ("upright", "swim"),
    "hopper": ("stand", "hop"),
    "humanoid": ("stand", "walk", "run", "run_pure_state"),
    "humanoid_CMU": ("stand", "walk", "run"),
    "lqr": ("lqr_2_1", "lqr_6_2"),
    "manipulator": ("bring_ball", "bring_peg", "insert_ball", "insert_peg"),
    "pendulum": ("swingup",),
    "point_mass": ("easy", "hard"),
    "quadruped": ("walk", "run", "escape", "fetch"),
    "reacher": ("easy", "hard"),
    "stacker": ("stack_2", "stack_4"),
    "swimmer": ("swimmer6", "swimmer15"),
    "walker": ("stand", "walk", "run"),
}
"""dm_control's domains and their tasks; a test holds this list against the installed suite."""

SUITE_TASKS = {f"{domain}_{task}": (domain, task) for domain, tasks in SUITE.items() for task in tasks}
MAZE_TASKS = {f"maze_{layout}": layout for layout in LAYOUTS}


def unknown_task(task: str, reason: str = "") -> UserError:
    """The error for a name that no world has, with the nearest name and all of them."""
    names = [*MAZE_TASKS, *SUITE_TASKS, *(f"gym:{name}" for name in gymnasium.registry)]
    guess = "".join(f" Did you mean {name!r}?" for name in difflib.get_close_matches(task, names, n=1))
    suite = "; ".join(f"{domain}_{{{','.join(tasks)}}}" for domain, tasks in SUITE.items())
    return UserError(
        f"unknown task {task!r}{reason and f': {reason}'}.{guess} Valid: maze_{{{','.join(LAYOUTS)}}}; {suite}; "
        "gym:<id> for a Gymnasium environment; <module>:<Class> for your own."
    )


def check_task(task: str) -> None:
    """Raise UserError unless there is such a world; loads no simulator and needs no GL."""
    if task in MAZE_TASKS or task in SUITE_TASKS:
        return
    module, colon, name = task.partition(":")
    if not (module and colon and name):
        raise unknown_task(task)
    if module == "gym":
        if name not in gymnasium.registry:
            raise unknown_task(task, "Gymnasium has registered no such id")
    elif not _is_findable(module):
        raise unknown_task(task, f"no module {module!r} is found; install it or add its folder to PYTHONPATH")


def is_code(task: str) -> bool:
    """Whether the task names a module that is imported to play it."""
    return task not in SUITE_TASKS and task not in MAZE_TASKS and not task.startswith("gym:")


def needs_gl(task: str, env: Env) -> bool:
    """Whether playing the task takes OpenGL: its pixels are observed, and MuJoCo renders them."""
    return env.observation == "pixels" and renders_by_gl(task)


def renders_by_gl(task: str) -> bool:
    """Whether MuJoCo renders the world, which takes OpenGL."""
    if task.startswith("gym:"):
        check_task(task)
        return "mujoco" in str(gymnasium.registry[task.removeprefix("gym:")].entry_point)
    return task in SUITE_TASKS


def _is_findable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # a parent package is missing, or the name is none
        return False
