"""The DeepMind Control suite; together with ``physics.py`` the only importer of dm_control and MuJoCo."""

from __future__ import annotations

import importlib
from typing import Any

import mujoco
import numpy as np
from dm_control import suite
from dm_control.mujoco import Camera

from ccwm.envs.change import PHYSICAL, Change
from ccwm.envs.physics import changed_models
from ccwm.envs.world import Image, Outcome, Vector, scale_action

FAST = {"shadow": False, "reflection": False}
MODEL_SEED = 0
"""Seed of models that dm_control randomises (lqr): a task has one model for all episode seeds."""


class SuiteWorld:
    """One task of the suite, seen through its tracking camera."""

    def __init__(self, domain: str, task: str, *, size: int, quality: str, change: Change) -> None:
        change.allow_only(*PHYSICAL, task=f"{domain}_{task}")
        self._env = _load(domain, task, change)
        self._flags = FAST if quality == "fast" else None
        if quality == "fast":  # before the first render, which makes the GL context with these values
            self._env.physics.model.vis.quality.offsamples = 0
            self._env.physics.model.vis.quality.shadowsize = 0
        # One camera for all frames: physics.render makes a new one each time, which takes as long as rendering.
        self._camera = Camera(self._env.physics, size, size, camera_id=2 if domain == "quadruped" else 0)
        spec = self._env.action_spec()
        self._bounds = np.array([spec.minimum, spec.maximum])
        self._bounds[np.abs(self._bounds) >= mujoco.mjMAXVAL] = np.inf  # how dm_control marks an unlimited motor
        self._seed_task(None)
        self.action_size: int = spec.shape[0]
        self._observation: dict[str, Any] = {}

    def reset(self, seed: int | None) -> None:
        """Start an episode, from the seed or from where the task's random stream stands."""
        if seed is not None:
            self._seed_task(seed)
        self._observation = self._env.reset().observation

    def advance(self, action: Vector) -> Outcome:
        """Play one control step of dm_control with an action [A] in [-1, 1]."""
        step = self._env.step(scale_action(action, *self._bounds))
        self._observation = step.observation
        over = bool(step.last())
        return Outcome(float(step.reward), terminated=over and step.discount == 0, truncated=over and step.discount > 0)

    def render(self) -> Image:
        """dm_control's own picture, [size, size, 3]."""
        image: Image = self._camera.render(render_flag_overrides=self._flags)
        return image.copy()  # the camera renders into one buffer

    def state(self) -> Vector:
        """dm_control's observations, concatenated in their own order."""
        return np.concatenate([np.ravel(part) for part in self._observation.values()]).astype(np.float32)

    def close(self) -> None:
        """Free the GL context."""
        self._env.close()
        self._env.physics.free()

    def _seed_task(self, seed: int | None) -> None:
        # dm_control takes a seed only where a model is built; its tasks draw from nothing but this state.
        self._env.task._random = np.random.RandomState(seed)


def _load(domain: str, task: str, change: Change) -> Any:
    random = {"random": np.random.RandomState(MODEL_SEED)}
    if not change.physical:
        return suite.load(domain, task, task_kwargs=random)
    with changed_models(importlib.import_module(f"dm_control.suite.{domain}"), change):
        return suite.load(domain, task, task_kwargs=random)
