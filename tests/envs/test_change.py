"""Changes of a world, and who can make them."""

import pytest

from ccwm.envs.change import UNCHANGED, Change
from ccwm.errors import UserError


def test_only_what_a_world_has_can_change():
    Change(reward=2.0, mass=0.5).allow_only("mass", task="walker_walk")
    UNCHANGED.allow_only(task="gym:Pendulum-v1")
    with pytest.raises(UserError, match=r"walker_walk.*layout.*reward, mass"):
        Change(mass=0.5, layout="open").allow_only("mass", task="walker_walk")


def test_a_model_is_rebuilt_for_physics_alone():
    assert [Change(gravity=2.0).physical, Change(reward=2.0, layout="open").physical] == [True, False]
