"""Loaded before any test module, so that MUJOCO_GL stands before one of them imports dm_control."""

import ccwm.envs  # noqa: F401
