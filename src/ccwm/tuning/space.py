"""The search space: it draws points that keep their constraints, clips to them and lays grids over them."""

from __future__ import annotations

import itertools
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
        return {
            key: f"{key} / {parameter.high}" if isinstance(parameter.high, str) else key
            for key, parameter in self.parameters.items()
        }

    def suggest(self, trial: BaseTrial) -> Point:
        """Draw a point."""
        point: Point = {}
        for key, parameter in self.parameters.items():
            match parameter:
                case Parameter(kind="choice", choices=list(choices)):
                    point[key] = trial.suggest_categorical(key, choices)
                case Parameter(high=str(other)):
                    share = trial.suggest_float(self.names[key], 0.0, 1.0)
                    point[key] = _at_share(parameter, share, point[other])
                case Parameter(kind="int", low=float(low), high=float(high)):
                    point[key] = trial.suggest_int(key, int(low), int(high), log=parameter.log)
                case Parameter(low=float(low), high=float(high)):
                    point[key] = trial.suggest_float(key, low, high, log=parameter.log)
        return point

    def params(self, point: Point) -> dict[str, Any]:
        """What Optuna must be told to draw exactly this point."""
        return {
            self.names[key]: _share_of(parameter, point[key], point[parameter.high])
            if isinstance(parameter.high, str)
            else point[key]
            for key, parameter in self.parameters.items()
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
        return self._product(lambda parameter, low, high: _spread(parameter, low, high, points))

    def corners(self) -> list[Point]:
        """Every combination of least and greatest values and of choices."""
        return self._product(lambda _, low, high: [low, high])

    def _product(self, values: Callable[[Parameter, float, float], list[float]]) -> list[Point]:
        points: list[Point] = [{}]
        for key, parameter in self.parameters.items():
            if parameter.choices is not None:
                points = [{**point, key: choice} for point, choice in itertools.product(points, parameter.choices)]
            else:
                points = [
                    {**point, key: value}
                    for point in points
                    for value in dict.fromkeys(values(parameter, *self._bounds(key, point)))
                ]
        return points

    def _bounds(self, key: str, point: Point) -> tuple[float, float]:
        parameter = self.parameters[key]
        assert parameter.low is not None
        assert parameter.high is not None
        high = point[parameter.high] if isinstance(parameter.high, str) else parameter.high
        return (int(parameter.low), int(high)) if parameter.kind == "int" else (parameter.low, high)


def _at_share(parameter: Parameter, share: float, high: float) -> float:
    assert parameter.low is not None
    if parameter.kind == "float":
        return parameter.low + share * (high - parameter.low)
    low, values = int(parameter.low), int(high) - int(parameter.low) + 1
    return low + min(int(share * values), values - 1)  # every whole number has the same part of [0, 1]


def _share_of(parameter: Parameter, value: float, high: float) -> float:
    assert parameter.low is not None
    if parameter.kind == "float":
        return (value - parameter.low) / (high - parameter.low) if high > parameter.low else 0.0
    return (value - parameter.low + 0.5) / (high - parameter.low + 1)


def _spread(parameter: Parameter, low: float, high: float, points: int) -> list[float]:
    """``points`` values from low to high, evenly or over orders of magnitude."""
    values = np.geomspace(low, high, points) if parameter.log else np.linspace(low, high, points)
    inner = [float(f"{value:.6g}") for value in values[1:-1]]
    if parameter.kind == "int":
        return [low, *(math.floor(value + 0.5) for value in inner), high]
    return [low, *inner, high]
