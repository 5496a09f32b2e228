"""The early check for GL, in real processes."""

import pytest

from ccwm.envs.gl import probe
from ccwm.errors import UserError


@pytest.fixture(autouse=True)
def _fresh():
    probe.cache_clear()
    yield
    probe.cache_clear()


def test_gl_works_here():
    probe()


def test_without_gl_the_hint_names_packages_and_settings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUJOCO_GL", "none_such")
    with pytest.raises(UserError, match="MUJOCO_GL=none_such") as error:
        probe()
    assert all(name in error.value.hint for name in ("libegl1", "libosmesa6", "MUJOCO_GL=glfw", "maze_two_rooms"))
