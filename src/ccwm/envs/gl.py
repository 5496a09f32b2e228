"""OpenGL: whether MuJoCo can render on this machine, checked early, and MuJoCo without it."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ccwm.errors import UserError

SCENE = """
import ccwm.envs
from dm_control import mujoco
scene = '<mujoco><worldbody><light pos="0 0 3"/><geom size="1" rgba="1 0 0 1"/></worldbody></mujoco>'
if not mujoco.Physics.from_xml_string(scene).render(16, 16).any():
    raise SystemExit("the picture is black")
"""
SECONDS = 120
HINT = """one of
  - no screen (Debian): apt-get install libegl1 libgl1-mesa-dri libopengl0, with MUJOCO_GL=egl
  - no screen, no GPU (Debian): apt-get install libosmesa6, with MUJOCO_GL=osmesa
  - a desktop with a screen: MUJOCO_GL=glfw
  - no GL at all: env.observation: state, or study.tasks: [maze_two_rooms] in params.yaml, or `ccwm preset maze`"""


@functools.cache
def probe() -> None:
    """Render a tiny scene in a process of its own, once; raise UserError with what to install if that fails."""
    try:
        # Its own process, because a failed start of GL leaves threads and half-made contexts behind.
        run = subprocess.run([sys.executable, "-c", SCENE], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        reason = f"no picture within {SECONDS} s"
    else:
        if run.returncode == 0:
            return
        reason = run.stderr.strip().rpartition("\n")[2] or f"exit code {run.returncode}"
    raise no_gl(reason)


def no_gl(reason: str) -> UserError:
    """The error where a picture is wanted that cannot be rendered."""
    return UserError(f"MuJoCo cannot render on this machine (MUJOCO_GL={os.environ['MUJOCO_GL']}: {reason})", hint=HINT)


@contextmanager
def simulator_without_gl() -> Iterator[None]:
    """Within, MuJoCo is imported without OpenGL, which it would start at once, or fail to; a render starts it later."""
    wanted = os.environ["MUJOCO_GL"]
    os.environ["MUJOCO_GL"] = "disabled"
    try:
        yield
    finally:
        os.environ["MUJOCO_GL"] = wanted
