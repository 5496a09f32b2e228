"""`ccwm gl`: GL is asked for only where a task needs it."""

from __future__ import annotations

from pathlib import Path

from cli_helpers import Ccwm, spoil


def test_a_maze_needs_no_gl(ccwm: Ccwm, project: Path) -> None:
    spoil(project, "study.tasks", ["maze_two_rooms"])
    assert ccwm("gl") == (0, "no task of params.yaml needs OpenGL\n", "")
