"""Changed worlds: what the compiled model of each really holds."""

import itertools
import logging
from typing import Any

import numpy as np
import pytest
from dm_control import suite
from dm_control.suite import cheetah
from small_env import small

from ccwm.envs.change import Change
from ccwm.envs.physics import compile_changed
from ccwm.errors import UserError

PAPER_FRICTION = list(itertools.product((0.6, 0.8), (0.4, 0.5), (0.3, 0.4)))


def model_of(task: str, change: Change) -> Any:
    env = small(task, change=change)
    return env.world._env.physics.model


def changed_cheetah(**values: Any) -> Any:
    return compile_changed(*cheetah.get_model_and_assets(), Change(units="absolute", **values))


@pytest.mark.parametrize(
    "task",
    [
        "cartpole_swingup",
        "walker_walk",
        "hopper_hop",
        "reacher_easy",
        "cheetah_run",
        "quadruped_run",
        "swimmer_swimmer6",
    ],
)
def test_factors_reach_every_body_geom_and_joint(task: str):
    before = model_of(task, Change())
    after = model_of(task, Change(mass=1.5, friction=(2.0, 3.0, 4.0), stiffness=0.5, damping=3.0, gravity=0.25))
    np.testing.assert_allclose(after.body_mass, before.body_mass * 1.5, rtol=1e-12)
    np.testing.assert_allclose(after.body_inertia, before.body_inertia * 1.5, rtol=1e-12)
    np.testing.assert_allclose(after.geom_friction, before.geom_friction * [2, 3, 4], rtol=1e-12)
    np.testing.assert_allclose(after.jnt_stiffness, before.jnt_stiffness * 0.5, rtol=1e-12)
    np.testing.assert_allclose(after.dof_damping, before.dof_damping * 3, rtol=1e-12)
    np.testing.assert_allclose(after.opt.gravity, before.opt.gravity * 0.25, rtol=1e-12)
    # What the compiler derives from masses follows: an inverse weight falls as the mass grows.
    moving = before.body_invweight0[:, 0] > 1e-6
    assert (after.body_invweight0[moving, 0] < before.body_invweight0[moving, 0]).all()


@pytest.mark.parametrize("mass", [6.0, 8.0, 10.0, 20.0])
def test_the_papers_masses_are_what_the_xml_would_give(mass: float):
    model = changed_cheetah(mass=mass)
    assert model.body_mass.sum() == pytest.approx(mass)
    xml, assets = cheetah.get_model_and_assets()
    stated = xml.replace(b'settotalmass="14"', f'settotalmass="{mass}"'.encode())
    reference = cheetah.Physics.from_xml_string(stated, assets).model
    for field in ("body_mass", "body_inertia", "body_invweight0", "dof_invweight0", "dof_M0"):
        np.testing.assert_allclose(getattr(model, field), getattr(reference, field), rtol=1e-9, err_msg=field)


@pytest.mark.parametrize("friction", PAPER_FRICTION)
def test_the_papers_frictions_reach_the_body_but_not_the_ground(friction: tuple[float, float, float]):
    model = changed_cheetah(friction=friction)
    np.testing.assert_array_equal(model.geom_friction[0], [1, 0.005, 0.0001])  # the ground states none and has no class
    np.testing.assert_array_equal(model.geom_friction[1:], [friction] * 8)


@pytest.mark.parametrize("stiffness", [2.0, 6.0, 10.0])
def test_the_papers_stiffnesses_reach_no_joint_and_that_is_said(stiffness: float, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        model = changed_cheetah(stiffness=stiffness)
    assert model.jnt_stiffness.tolist() == [0, 0, 0, 240, 180, 120, 180, 120, 60]  # every joint states its own
    assert f"stiffness {stiffness} (absolute) changes nothing" in caplog.text


def test_absolute_values_reach_what_states_none():
    model = model_of("walker_walk", Change(stiffness=3.0, gravity=1.6, friction=(0.5, 0.2, 0.3), units="absolute"))
    assert (model.jnt_stiffness == 3).all()  # walker's default joint states no stiffness, so the root default takes it
    assert model.opt.gravity.tolist() == [0, 0, -1.6]
    assert (model.geom_friction == [0.5, 0.2, 0.3]).all()


def test_no_change_compiles_dm_controls_own_model():
    xml, assets = cheetah.get_model_and_assets()
    ours, theirs = compile_changed(xml, assets, Change()), cheetah.Physics.from_xml_string(xml, assets).model
    for name in (
        "body_mass",
        "geom_friction",
        "jnt_stiffness",
        "dof_damping",
        "geom_rgba",
        "cam_pos",
        "body_invweight0",
    ):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)


def test_the_suite_is_left_as_it_was():
    model_of("cheetah_run", Change(mass=2.0))
    assert suite.load("cheetah", "run").physics.model.body_mass.sum() == pytest.approx(14)
    with pytest.raises(UserError, match=r"cheetah_run.*layout"):
        model_of("cheetah_run", Change(layout="open"))


def test_a_changed_world_moves_differently_and_is_seeded_alike():
    states = []
    for change in (Change(), Change(mass=3.0), Change(mass=3.0)):
        env = small("hopper_hop", change=change)
        env.reset(seed=1)
        for _ in range(5):
            env.step(env.action_space.high)
        states.append(env.state())
    assert not np.allclose(states[0], states[1])
    np.testing.assert_array_equal(states[1], states[2])
