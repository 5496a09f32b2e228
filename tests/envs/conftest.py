"""Loaded before any test module, so that MUJOCO_GL is set before one of them imports dm_control."""

import ccwm.envs  # noqa: F401
