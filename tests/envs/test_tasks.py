"""The names of worlds."""

import pytest
from dm_control import suite

from ccwm.envs.tasks import SUITE, check_task, needs_gl, renders_by_gl
from ccwm.errors import UserError
from ccwm.settings.agent import Env


def test_our_list_of_tasks_is_the_suites():
    assert suite.TASKS_BY_DOMAIN == SUITE


@pytest.mark.parametrize(
    ("task", "guess"),
    [("wlker_walk", "walker_walk"), ("maze_tworooms", "maze_two_rooms"), ("gym:Pendulm-v1", "gym:Pendulum-v1")],
)
def test_an_unknown_task_is_refused_with_the_nearest_guess_and_all_names(task: str, guess: str):
    with pytest.raises(UserError, match=f"'{task}'.*'{guess}'.*maze_{{open,.*cheetah_{{run}}.*gym:<id>"):
        check_task(task)


@pytest.mark.parametrize("task", ["", ":", "no_such_module:World", "walker", "gym:"])
def test_names_without_a_world_are_refused(task: str):
    with pytest.raises(UserError, match=f"'{task}'"):
        check_task(task)


def test_only_pixels_of_mujoco_worlds_need_gl():
    tasks = ("walker_walk", "gym:HalfCheetah-v5", "gym:Pendulum-v1", "maze_pit")
    assert [renders_by_gl(task) for task in tasks] == [True, True, False, False]
    assert [needs_gl(task, Env(observation="pixels")) for task in tasks] == [True, True, False, False]
    assert [needs_gl(task, Env(observation="state")) for task in tasks] == [False] * 4
