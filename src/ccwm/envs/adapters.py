"""Any gymnasium environment with continuous actions: ``gym:<id>`` or ``<module>:<Class>``."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.error import DependencyNotInstalled
from gymnasium.spaces import Box, Dict, Space, Tuple, flatdim, flatten

from ccwm.envs.change import Change
from ccwm.envs.rendering import area_resize
from ccwm.envs.tasks import unknown_task
from ccwm.envs.world import ActionRange, Image, Outcome, Vector, component_names
from ccwm.errors import UserError


class GymWorld:
    """A gymnasium environment: its picture is its own ``rgb_array``, its state its own observation, flattened.

    ``irreversible`` and ``success`` of its info are passed on.
    """

    def __init__(self, task: str, *, size: int, change: Change) -> None:
        change.allow_only(task=task)
        self._task = task
        self._size = size
        self._env = _build(task)
        space = self._env.action_space
        if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
            raise UserError(f"{task} has the action space {space}", hint="actions must be continuous, a float Box")
        self._space = space
        self._range = ActionRange(space.low, space.high)
        self.action_size = int(np.prod(space.shape))
        self._observation: Any = None

    @functools.cached_property
    def observation_names(self) -> tuple[str, ...]:
        """`observation[0]`, or where the environment observes a dictionary `key[0]`, `key.inner[0]`."""
        try:
            return tuple(_names("", self._env.observation_space))
        except (NotImplementedError, ValueError):  # how gymnasium refuses graphs and sequences
            raise UserError(
                f"{self._task} has the observation space {self._env.observation_space}, which is no vector",
                hint="env.observation: pixels",
            ) from None

    def reset(self, seed: int | None) -> None:
        """Start an episode, from the seed or from where the environment's random stream stands."""
        self._observation, _ = self._env.reset(seed=seed)

    def advance(self, action: Vector) -> Outcome:
        """Play one step of the environment with an action [A] in [-1, 1]."""
        scaled = self._range.scale(action.reshape(self._space.shape))
        self._observation, reward, terminated, truncated, info = self._env.step(scaled.astype(self._space.dtype))
        success = bool(info["success"]) if "success" in info else None
        irreversible = bool(info.get("irreversible", False))
        return Outcome(float(reward), bool(terminated), bool(truncated), irreversible, success)

    def render(self) -> Image:
        """The environment's own picture, averaged to [size, size, 3]."""
        with _missing_packages(self._task):  # classic control imports its packages only here
            picture = self._env.render()
        if not isinstance(picture, np.ndarray) or picture.ndim != 3 or picture.shape[2] != 3:
            raise UserError(f"{self._task}: render() must give an image [h, w, 3] with render_mode='rgb_array'")
        return area_resize(picture, self._size)

    def state(self) -> Vector:
        """The environment's own observation, flattened."""
        return np.asarray(flatten(self._env.observation_space, self._observation), np.float32).ravel()

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


def _names(name: str, space: Space[Any]) -> Iterator[str]:
    """The names of a space's entries, in the order of gymnasium's ``flatten``."""
    if isinstance(space, Dict):
        for key, inner in space.spaces.items():
            yield from _names(f"{name}.{key}" if name else key, inner)
    elif isinstance(space, Tuple):
        for index, inner in enumerate(space.spaces):
            yield from _names(f"{name or 'observation'}[{index}]", inner)
    else:
        yield from component_names(name or "observation", space.shape if isinstance(space, Box) else (flatdim(space),))


def _build(task: str) -> gymnasium.Env[Any, Any]:
    module, _, name = task.partition(":")
    if module == "gym":
        return _build_registered(task, name)
    found: Any = getattr(importlib.import_module(module), name, None)
    if not (inspect.isclass(found) and issubclass(found, gymnasium.Env)):
        raise unknown_task(task, f"{module} has no gymnasium.Env class {name!r}")
    accepted = inspect.signature(found).parameters.values()
    takes_mode = any(p.name == "render_mode" or p.kind is inspect.Parameter.VAR_KEYWORD for p in accepted)
    return found(**({"render_mode": "rgb_array"} if takes_mode else {}))


def _build_registered(task: str, name: str) -> gymnasium.Env[Any, Any]:
    """A Gymnasium id; an environment that offers both, as LunarLander does, is made with continuous actions."""
    with _missing_packages(task):
        entry_point = gymnasium.spec(name).entry_point
        creator: Any = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
        wanted = {"continuous": True} if "continuous" in inspect.signature(creator).parameters else {}
        return gymnasium.make(name, render_mode="rgb_array", disable_env_checker=True, **wanted)


@contextmanager
def _missing_packages(task: str) -> Iterator[None]:
    """Within, a missing package is a UserError with the command that installs it."""
    try:
        yield
    except DependencyNotInstalled as error:
        _, gymnasiums, family = str(gymnasium.spec(task.removeprefix("gym:")).entry_point).partition("gymnasium.envs.")
        extra = family.partition(".")[0].replace("_", "-")
        hint = f'`pip install "gymnasium[{extra}]"`' if gymnasiums else "install what it asks for"
        raise UserError(f"{task} needs a package that is not installed ({error})", hint=hint) from error
