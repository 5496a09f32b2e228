"""The early look for GL, in real processes."""

import pytest

from ccwm.envs.gl import NoGL, probe


@pytest.fixture(autouse=True)
def _fresh():
    probe.cache_clear()
    yield
    probe.cache_clear()


def test_where_gl_works_nothing_is_said():
    probe()


def test_without_gl_the_cures_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUJOCO_GL", "none_such")
    with pytest.raises(NoGL, match=r"(?s)MUJOCO_GL=none_such: .*libegl1 libgl1-mesa-dri.*libosmesa6.*maze_two_rooms"):
        probe()
