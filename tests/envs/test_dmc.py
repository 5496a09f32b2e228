"""The DeepMind Control suite behind our contract, held against dm_control itself."""

import numpy as np
import pytest
from dm_control import suite
from small_env import small


@pytest.mark.parametrize(("task", "camera"), [("walker_walk", 0), ("quadruped_run", 2)])
def test_full_quality_is_dm_controls_own_picture(task: str, camera: int):
    env = small(task, size=64, action_repeat=2, time_limit=1000, render_quality="full")
    reference = suite.load(*task.split("_"), task_kwargs={"random": 7})
    image, _ = env.reset(seed=7)
    reference.reset()
    np.testing.assert_array_equal(image, reference.physics.render(64, 64, camera_id=camera))
    action = np.linspace(-1, 1, env.action_space.shape[0]).astype(np.float32)
    spec = reference.action_spec()  # quadruped's is not ±1
    scaled = spec.minimum + (action.astype(float) + 1) / 2 * (spec.maximum - spec.minimum)
    for _ in range(2):
        image, reward, *_ = env.step(action)
        expected = sum(reference.step(scaled).reward for _ in range(2))
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


def test_the_state_is_the_suites_observation():
    env = small("reacher_easy", size=32, action_repeat=1, time_limit=100, render_quality="fast")
    env.reset(seed=3)
    reference = suite.load("reacher", "easy", task_kwargs={"random": 3})
    expected = np.concatenate(list(reference.reset().observation.values()))
    state = env.state()
    assert state.dtype == np.float32
    np.testing.assert_allclose(state, expected, rtol=1e-6)


def test_a_seeded_reset_does_not_build_the_model_again():
    env = small("walker_walk", size=32, action_repeat=1, time_limit=100, render_quality="fast")
    env.reset(seed=1)
    model = env.world._env.physics.model
    env.reset(seed=2)
    assert env.world._env.physics.model is model
