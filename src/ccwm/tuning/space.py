"""The search space: it draws points that keep their constraints, clips to them and lays grids over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.trial import BaseTrial

from ccwm.settings.tune import Parameter

Point = dict[str, Any]
"""A value for every key of the space, as ``params.yaml`` would have it."""


@dataclass(frozen=True)
class Space:
    """The parameters by key; one whose high is a key comes after the parameter that it names.

    A parameter τ that must not exceed another one S is drawn as a share of the way from its low to S. So every draw is
    allowed, the space is the same for every trial, and no sampler needs to know of the constraint.
    """

    parameters: dict[str, Parameter]

    @property
    def names(self) -> dict[str, str]:
        """The name of each key's parameter in Optuna: the key, or `truncation.lookback / truncation.window`."""
        return {key: f"{key} / {each.high}" if _is_share(each) else key for key, each in self.parameters.items()}

    def suggest(self, trial: BaseTrial) -> Point:
        """Draw a point."""
        point: Point = {}
        for key, parameter in self.parameters.items():
            if parameter.choices is not None:
                point[key] = trial.suggest_categorical(key, parameter.choices)
                continue
            low, high = self._bounds(key, point)
            if _is_share(parameter):
                point[key] = _at_share(trial.suggest_float(self.names[key], 0.0, 1.0), low, high)
            elif isinstance(low, int):
                point[key] = trial.suggest_int(key, low, int(high), log=parameter.log)
            else:
                point[key] = trial.suggest_float(key, low, high, log=parameter.log)
        return point

    def params(self, point: Point) -> dict[str, Any]:
        """What Optuna must be told to draw exactly this point."""
        return {
            self.names[key]: _share_of(point[key], *self._bounds(key, point)) if _is_share(each) else point[key]
            for key, each in self.parameters.items()
        }

    def clip(self, point: Point) -> tuple[Point, list[str]]:
        """The nearest point of the space, and a message for each value that had to be moved."""
        inside: Point = {}
        for key, parameter in self.parameters.items():
            value = point[key]
            if parameter.choices is not None:
                inside[key] = value if value in parameter.choices else parameter.choices[0]
            else:
                low, high = self._bounds(key, inside)
                inside[key] = min(max(high if value is None else value, low), high)
        moved = [key for key, value in inside.items() if point[key] is not None and point[key] != value]
        return inside, [f"{key}: {point[key]} → {inside[key]}" for key in moved]

    def grid(self, points: int) -> list[Point]:
        """The grid of all choices and ``points`` values of every float and int, without repetition."""
        return self._product(lambda low, high, log: _spread(low, high, points, log=log))

    def corners(self) -> list[Point]:
        """Every combination of least and greatest values and of choices."""
        return self._product(lambda low, high, _: [low, high])

    def _product(self, values: Callable[[float, float, bool], list[float]]) -> list[Point]:
        points: list[Point] = [{}]
        for key, parameter in self.parameters.items():
            points = [
                {**point, key: value}
                for point in points
                for value in parameter.choices or dict.fromkeys(values(*self._bounds(key, point), parameter.log))
            ]
        return points

    def _bounds(self, key: str, point: Point) -> tuple[float, float]:
        """The bounds of a float, or of an int as ints, given the values of the parameters before it."""
        kind, low, high = self.parameters[key].kind, self.parameters[key].low, self.parameters[key].high
        high = point[high] if isinstance(high, str) else high
        assert low is not None
        assert high is not None
        return (int(low), int(high)) if kind == "int" else (low, high)


def _is_share(parameter: Parameter) -> bool:
    return isinstance(parameter.high, str)


def _at_share(share: float, low: float, high: float) -> float:
    if isinstance(low, int):
        values = int(high) - low + 1  # every whole number has the same part of [0, 1]
        return low + min(int(share * values), values - 1)
    return low + share * (high - low)


def _share_of(value: float, low: float, high: float) -> float:
    if isinstance(low, int):
        return (value - low + 0.5) / (high - low + 1)
    return (value - low) / (high - low) if high > low else 0.0


def _spread(low: float, high: float, points: int, *, log: bool) -> list[float]:
    """``points`` values from low to high, evenly or over orders of magnitude."""
    values = np.geomspace(low, high, points) if log else np.linspace(low, high, points)
    inner = [float(f"{value:.6g}") for value in values[1:-1]]
    return [low, *(math.floor(value + 0.5) if isinstance(low, int) else value for value in inner), high]
