"""`ccwm gl`: GL is asked for only where a task needs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import Ccwm, spoil


def test_a_maze_needs_no_gl(ccwm: Ccwm, project: Path) -> None:
    spoil(project, "study.tasks", ["maze_two_rooms"])
    assert ccwm("gl") == (0, "no task of params.yaml needs OpenGL\n", "")


def test_states_need_no_gl_and_pixels_do(ccwm: Ccwm, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("ccwm.cli.gl.probe", lambda: asked.append(None))
    spoil(project, "study.tasks", ["walker_walk"])
    spoil(project, "env.observation", "state")
    assert ccwm("gl") == (0, "no task of params.yaml needs OpenGL\n", "")
    assert not asked
    spoil(project, "env.observation", "pixels")
    assert ccwm("gl")[0] == 0
    assert asked
