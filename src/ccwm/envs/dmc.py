"""The DeepMind Control suite; together with ``physics.py`` the only importer of dm_control and MuJoCo."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import mujoco
import numpy as np
from dm_control import _render, suite
from dm_control.mujoco import Camera

from ccwm.envs.change import PHYSICAL, Change
from ccwm.envs.gl import no_gl
from ccwm.envs.physics import changed_models
from ccwm.envs.world import ActionRange, Image, Outcome, Vector, component_names

FAST = {"shadow": False, "reflection": False}
MODEL_SEED = 0
"""Seed of models that dm_control randomises (lqr): a task has one model for all episode seeds."""


class SuiteWorld:
    """One task of the suite: its picture is its tracking camera's, its state dm_control's observation."""

    def __init__(self, domain: str, task: str, *, size: int, quality: str, change: Change) -> None:
        change.allow_only(*PHYSICAL, task=f"{domain}_{task}")
        self._env = _load(domain, task, change)
        self._size, self._camera_id = size, 2 if domain == "quadruped" else 0
        self._flags = FAST if quality == "fast" else None
        if quality == "fast":  # before the first render, which makes the GL context with these values
            self._env.physics.model.vis.quality.offsamples = 0
            self._env.physics.model.vis.quality.shadowsize = 0
        spec = self._env.action_spec()
        bounds = np.array([spec.minimum, spec.maximum])
        bounds[np.abs(bounds) >= mujoco.mjMAXVAL] = np.inf  # how dm_control marks an unlimited motor
        self._range = ActionRange(*bounds)
        self._seed_task(None)
        self.action_size: int = spec.shape[0]
        parts = self._env.observation_spec()
        self.observation_names = tuple(name for key, part in parts.items() for name in component_names(key, part.shape))
        # An observation is a function of the physics alone and costs as much as a step of it, so that it is computed
        # when it is asked for and not, as dm_control does, for every frame.
        self._observe = self._env.task.get_observation
        self._env.task.get_observation = lambda physics: None

    def reset(self, seed: int | None) -> None:
        """Start an episode, from the seed or from where the task's random stream stands."""
        if seed is not None:
            self._seed_task(seed)
        self._env.reset()

    def advance(self, action: Vector) -> Outcome:
        """Play one control step of dm_control with an action [A] in [-1, 1]."""
        step = self._env.step(self._range.scale(action))
        over = bool(step.last())
        return Outcome(float(step.reward), terminated=over and step.discount == 0, truncated=over and step.discount > 0)

    def render(self) -> Image:
        """dm_control's own picture, [size, size, 3]."""
        image: Image = self._camera.render(render_flag_overrides=self._flags)
        return image.copy()  # the camera renders into one buffer

    def state(self) -> Vector:
        """dm_control's observations, concatenated in their own order."""
        parts = self._observe(self._env.physics).values()
        vector: Vector = np.concatenate([part.ravel() for part in parts], dtype=np.float32)
        return vector

    def close(self) -> None:
        """Free the GL context."""
        self._env.close()
        self._env.physics.free()

    @functools.cached_property
    def _camera(self) -> Camera:
        """One for all frames: physics.render makes a new one each time, which takes as long as rendering."""
        try:
            if _render.BACKEND in _render.constants.NO_RENDERER:  # imported by simulator_without_gl
                importlib.reload(_render)
            return Camera(self._env.physics, self._size, self._size, camera_id=self._camera_id)
        except Exception as error:  # each backend has its own way to fail
            raise no_gl(str(error)) from error

    def _seed_task(self, seed: int | None) -> None:
        # dm_control takes a seed only where a model is built; its tasks draw from nothing but this state.
        self._env.task._random = np.random.RandomState(seed)


def _load(domain: str, task: str, change: Change) -> Any:
    random = {"random": np.random.RandomState(MODEL_SEED)}
    if not change.physical:
        return suite.load(domain, task, task_kwargs=random)
    with changed_models(importlib.import_module(f"dm_control.suite.{domain}"), change):
        return suite.load(domain, task, task_kwargs=random)
