"""The DeepMind Control suite behind our contract, held against dm_control itself."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from dm_control import suite
from dm_control.suite import cartpole
from small_env import small

from ccwm.envs.tasks import SUITE_TASKS


def scaled(action: np.ndarray, spec: Any) -> np.ndarray:
    """From [-1, 1] to the suite's own bounds."""
    return spec.minimum + (action.astype(float) + 1) / 2 * (spec.maximum - spec.minimum)


def flat(observation: dict[str, Any]) -> np.ndarray:
    """dm_control's observations as one vector."""
    return np.concatenate([np.ravel(part) for part in observation.values()]).astype(np.float32)


@pytest.mark.parametrize(("task", "camera"), [("walker_walk", 0), ("quadruped_run", 2)])
def test_full_quality_is_dm_controls_own_picture(task: str, camera: int):
    env = small(task, size=64, action_repeat=2, time_limit=1000, render_quality="full")
    reference = suite.load(*task.split("_"), task_kwargs={"random": 7})
    image, _ = env.reset(seed=7)
    reference.reset()
    np.testing.assert_array_equal(image, reference.physics.render(64, 64, camera_id=camera))
    action = np.linspace(-1, 1, env.action_space.shape[0]).astype(np.float32)
    spec = reference.action_spec()  # quadruped's is not ±1
    for _ in range(2):
        image, reward, *_ = env.step(action)
        expected = sum(reference.step(scaled(action, spec)).reward for _ in range(2))
        np.testing.assert_array_equal(image, reference.physics.render(64, 64, camera_id=camera))
        assert reward == expected


def test_fast_quality_looks_much_alike():
    images = {}
    for quality in ("full", "fast"):
        env = small("cheetah_run", size=64, action_repeat=2, time_limit=1000, render_quality=quality)
        env.reset(seed=1)
        images[quality] = env.step(env.action_space.high)[0].astype(int)
        context = env.world._env.physics.contexts.mujoco.ptr
        assert (context.offSamples > 0, context.shadowSize > 0) == (quality == "full", quality == "full")
    difference = np.abs(images["full"] - images["fast"])
    assert 0 < difference.mean() < 4


def test_the_suites_time_limit_truncates():
    env = small("pendulum_swingup", size=32, action_repeat=16, time_limit=100_000, render_quality="fast")
    env.reset(seed=0)
    env.world._env._step_count = 990
    _, _, terminated, truncated, info = env.step(np.zeros(1, np.float32))
    assert (terminated, truncated, info["frames"]) == (False, True, 10)


def test_a_discount_of_zero_terminates():
    env = small("lqr_lqr_2_1", size=32, action_repeat=2, time_limit=1000, render_quality="fast")
    env.reset(seed=0)
    physics = env.world._env.physics
    with physics.reset_context():
        physics.set_state(np.zeros_like(physics.get_state()))  # at rest on the goal, where lqr is over
    _, _, terminated, truncated, info = env.step(np.zeros(1, np.float32))
    assert (terminated, truncated, info["frames"]) == (True, False, 1)


@pytest.mark.parametrize(
    "task",
    [
        "ball_in_cup_catch",
        "cartpole_swingup",
        "cheetah_run",
        "finger_spin",
        "hopper_hop",
        "manipulator_bring_ball",
        "quadruped_run",
        "reacher_easy",
        "walker_walk",
    ],
)
def test_a_state_is_the_suites_observation_to_the_bit(task: str):
    env = small(task, observation="state", action_repeat=2, time_limit=1000)
    domain, name = SUITE_TASKS[task]
    reference = suite.load(domain, name, task_kwargs={"random": 3})
    expected = reference.reset().observation
    parts = [key for key, part in expected.items() for _ in range(np.size(part))]
    assert [name.partition("[")[0] for name in env.observation_names] == parts
    spec = reference.action_spec()
    state, _ = env.reset(seed=3)
    for action in np.random.default_rng(0).uniform(-1, 1, (40, env.action_size)).astype(np.float32):
        np.testing.assert_array_equal(state, flat(expected), strict=True)
        steps = [reference.step(scaled(action, spec)) for _ in range(2)]
        state, reward, *_ = env.step(action)
        expected = steps[1].observation
        assert reward == steps[0].reward + steps[1].reward


def test_names_are_the_suites_own():
    env = small("walker_walk", observation="state")
    assert env.observation_names[::13] == ("orientations[0]", "orientations[13]")
    assert env.observation_names[14:16] == ("height", "velocity[0]")


def test_a_state_computes_no_observation_between_the_agents_steps(monkeypatch: pytest.MonkeyPatch):
    observe, calls = cartpole.Balance.get_observation, []
    monkeypatch.setattr(cartpole.Balance, "get_observation", lambda *given: calls.append(None) or observe(*given))
    env = small("cartpole_swingup", observation="state", action_repeat=4)
    del calls[:]
    env.reset(seed=0)
    assert len(calls) == 1
    env.step(env.action_space.high)
    assert len(calls) == 2


STATES = """
import sys
from ccwm.envs.factory import make_env
from ccwm.settings.agent import Env
env = make_env("cartpole_balance", Env(observation="state", size=32))
env.reset(seed=0)
env.step(env.action_space.high)
print("OpenGL" in sys.modules)
try:
    print(env.render().any())
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("gl", "told"), [("egl", "True"), ("disabled", "UserError MuJoCo cannot render"), ("osmesa ", "UserError MuJoCo")]
)
def test_gl_is_loaded_by_the_first_render_alone(gl: str, told: str):
    """A state needs no OpenGL, not even a name that MuJoCo knows; a picture of it says what is missing."""
    run = subprocess.run(
        [sys.executable, "-c", STATES], env=os.environ | {"MUJOCO_GL": gl}, capture_output=True, text=True, check=True
    )
    loaded, picture = run.stdout.splitlines()[:2]
    assert loaded == "False"
    assert picture.startswith(told)


def test_a_seeded_reset_does_not_build_the_model_again():
    env = small("walker_walk", size=32, action_repeat=1, time_limit=100, render_quality="fast")
    env.reset(seed=1)
    model = env.world._env.physics.model
    env.reset(seed=2)
    assert env.world._env.physics.model is model
