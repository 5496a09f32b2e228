"""Gymnasium environments: the DeepMind Control suite, mazes, and user-defined ones."""

import os

# dm_control chooses its renderer at import. EGL needs no screen; a value that the user has set wins.
os.environ.setdefault("MUJOCO_GL", "egl")
