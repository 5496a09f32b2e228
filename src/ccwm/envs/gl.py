"""Whether this machine can draw MuJoCo scenes, found out early and told in plain words."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

from ccwm.errors import UserError

SCENE = """
import ccwm.envs
from dm_control import mujoco
scene = '<mujoco><worldbody><light pos="0 0 3"/><geom size="1" rgba="1 0 0 1"/></worldbody></mujoco>'
if not mujoco.Physics.from_xml_string(scene).render(16, 16).any():
    raise SystemExit("the picture is black")
"""
SECONDS = 120


class NoGL(UserError, RuntimeError):
    """MuJoCo cannot draw here."""

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(
            f"MuJoCo cannot draw on this machine (MUJOCO_GL={backend}: {reason}).\n"
            "Cures, any one of them:\n"
            "  - no screen (Debian): apt-get install libegl1 libgl1-mesa-dri libopengl0, with MUJOCO_GL=egl\n"
            "  - no screen, no GPU (Debian): apt-get install libosmesa6, with MUJOCO_GL=osmesa\n"
            "  - a desktop with a screen: MUJOCO_GL=glfw\n"
            "  - no GL at all: study.tasks: [maze_two_rooms] in params.yaml, or `ccwm preset maze`"
        )


@functools.cache
def probe() -> None:
    """Draw a tiny scene in a process of its own, once; raise NoGL with the cures if that fails."""
    backend = os.environ.get("MUJOCO_GL", "egl")
    try:
        # Its own process, because a failed GL start leaves threads and half-made contexts behind.
        run = subprocess.run([sys.executable, "-c", SCENE], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as slow:
        raise NoGL(backend, f"no picture within {SECONDS} s") from slow
    if run.returncode != 0:
        lines = [line.strip() for line in run.stderr.splitlines() if line.strip()]
        raise NoGL(backend, lines[-1] if lines else f"exit code {run.returncode}")
