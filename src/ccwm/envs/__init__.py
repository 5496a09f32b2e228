"""Worlds, all as gymnasium environments."""

import os

# dm_control chooses how to draw while it is imported. EGL draws without a screen; whoever sets it himself is heard.
os.environ.setdefault("MUJOCO_GL", "egl")
