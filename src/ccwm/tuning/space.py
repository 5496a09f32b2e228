"""What a search may change: from ``tune.space`` to points that the settings accept, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ccwm.envs.tasks import MAZE_TASKS, check_task
from ccwm.errors import did_you_mean
from ccwm.settings.parsing import BadParams
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.tune import Parameter
from ccwm.settings.variants import OVERRIDABLE, resolve

Point = dict[str, Any]
"""A value for every key of the space, as ``params.yaml`` would have it."""

MEASURED = ("train.env_steps", "train.evaluate_every", "train.evaluate_episodes")
"""Settings that change what is measured, so that trials with different ones could not be compared."""
MOST_CORNERS = 2048


class Suggesting(Protocol):
    """What an Optuna trial is asked for."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number between the bounds."""

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """A whole number between the bounds, both included."""

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        """One of the choices."""


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

    def suggest(self, trial: Suggesting) -> Point:
        """Draw a point."""
        point: Point = {}
        for key, parameter in self.parameters.items():
            match parameter:
                case Parameter(kind="choice", choices=list(choices)):
                    point[key] = trial.suggest_categorical(key, choices)
                case Parameter(high=str(other)):
                    share = trial.suggest_float(self.names[key], 0.0, 1.0)
                    point[key] = _at_share(parameter, share, point[other])
                case Parameter(kind="int", low=low, high=high):
                    point[key] = trial.suggest_int(key, int(low), int(high), log=parameter.log)  # type: ignore[arg-type]
                case Parameter(low=low, high=high):
                    point[key] = trial.suggest_float(key, low, high, log=parameter.log)  # type: ignore[arg-type]
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
        """The nearest point of the space, and a word for each value that had to be moved."""
        inside: Point = {}
        for key, parameter in self.parameters.items():
            value = point[key]
            if parameter.kind == "choice":
                assert parameter.choices is not None
                inside[key] = value if value in parameter.choices else parameter.choices[0]
            else:
                low, high = self._bounds(key, inside)
                inside[key] = min(max(high if value is None else value, low), high)
        moved = [
            f"{key}: {point[key]} → {value}"
            for key, value in inside.items()
            if point[key] is not None and point[key] != value
        ]
        return inside, moved

    def grid(self, points: int) -> list[Point]:
        """The grid of all choices and ``points`` values of every float and int, without repetition."""
        return self._product(lambda parameter, low, high: _spread(parameter, low, high, points))

    def corners(self) -> Iterator[Point]:
        """Every combination of least and greatest values and of choices: what validation must accept."""
        corners = self._product(lambda parameter, low, high: [low, high])
        step = -(-len(corners) // MOST_CORNERS)
        yield from corners[::step]

    def _product(self, values: Any) -> list[Point]:
        points: list[Point] = [{}]
        for key, parameter in self.parameters.items():
            if parameter.kind == "choice":
                assert parameter.choices is not None
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


def make_space(settings: Settings) -> Space:
    """The space of ``tune.space``, refused where a key is unknown, a bound is, or a corner would not validate."""
    tune = settings.tune
    check_task(tune.task)
    for part, keys in (("space", tune.space), ("overrides", tune.overrides)):
        for key in keys:
            _check_key(key, f"tune.{part}", settings)
    for key in tune.space:
        if key in MEASURED:
            raise BadParams(f"tune.space: {key} changes what is measured, so that trials could not be compared")
    trial_settings(settings, {})
    space = Space(_ordered(_resolved(tune.space, trial_settings(settings, {}))))
    for point in space.corners():
        try:
            trial_settings(settings, point)
        except BadParams as refused:
            shown = ", ".join(f"{key} = {value}" for key, value in point.items())
            raise BadParams(f"tune.space reaches {shown}, which the settings refuse: {_reason(refused)}") from None
    _check_effect(settings)
    return space


def trial_settings(settings: Settings, point: Point) -> Settings:
    """The settings that a trial is trained with: the variant's, with ``tune.overrides`` and the point, checked."""
    tune = settings.tune
    own = {**settings.variants.get(tune.variant, {}), **tune.overrides, **point}
    known = tune.variant in settings.variants
    variants = {**settings.variants, tune.variant: own} if known else settings.variants
    return resolve(settings.model_copy(update={"variants": variants}), tune.variant)


def default_point(settings: Settings, space: Space) -> tuple[Point, list[str]]:
    """The point of ``params.yaml`` as it stands, and what had to be moved into the space."""
    return space.clip(_values(trial_settings(settings, {}), space))


def paper_point(settings: Settings, space: Space) -> tuple[Point, list[str]]:
    """The paper's values, from its preset, and what had to be moved into the space."""
    paper = load_preset("paper")
    variant = settings.tune.variant
    return space.clip(_values(resolve(paper, variant) if variant in paper.variants else paper, space))


def value_at(settings: Settings, key: str) -> Any:
    """The value of a setting by its dotted key."""
    section, _, field = key.partition(".")
    return getattr(getattr(settings, section), field)


def nested(point: Point) -> dict[str, Any]:
    """Dotted keys as sections."""
    sections: dict[str, Any] = {}
    for key, value in point.items():
        section, _, field = key.partition(".")
        sections.setdefault(section, {})[field] = value
    return sections


def _values(settings: Settings, space: Space) -> Point:
    return {key: value_at(settings, key) for key in space.parameters}


def _check_key(key: str, where: str, settings: Settings) -> None:
    content = settings.model_dump(mode="json")
    known = [f"{section}.{field}" for section in OVERRIDABLE for field in content[section]]
    if key not in known:
        section = key.partition(".")[0]
        near = [name for name in known if name.startswith(f"{section}.")] if section in OVERRIDABLE else known
        found = did_you_mean(key, near)
        hint = found if section in OVERRIDABLE else found.split(" Known:")[0]
        raise BadParams(
            f"{where}: {key!r} is no setting of training; keys are `section.field` with a section of "
            f"{', '.join(OVERRIDABLE)}.{hint}"
        )


def _resolved(parameters: Mapping[str, Parameter], settings: Settings) -> dict[str, Parameter]:
    """Every high that names a setting outside the space replaced by that setting's value."""
    resolved = {}
    for key, parameter in parameters.items():
        if isinstance(parameter.high, str):
            parameter = _bounded(key, parameter, parameters, settings)
        resolved[key] = parameter
    return resolved


def _bounded(key: str, parameter: Parameter, parameters: Mapping[str, Parameter], settings: Settings) -> Parameter:
    other, where = parameter.high, f"tune.space.{key}.high"
    assert isinstance(other, str)
    if other not in parameters:
        _check_key(other, where, settings)
        high = value_at(settings, other)
        if isinstance(high, bool) or not isinstance(high, int | float) or high <= (parameter.low or 0):
            raise BadParams(f"{where}: {other} is {high}, which is no number above the low of {parameter.low}")
        return parameter.model_copy(update={"high": high})
    named = parameters[other]
    if named.kind == "choice" or isinstance(named.high, str) or other == key:
        raise BadParams(f"{where}: {other} has no bounds of its own; name a float or an int that has")
    assert named.low is not None
    assert parameter.low is not None
    if parameter.low > named.low:
        raise BadParams(f"{where}: {other} may be {named.low:g}, which is below {key}'s low of {parameter.low:g}")
    return parameter


def _ordered(parameters: dict[str, Parameter]) -> dict[str, Parameter]:
    """Those first whose bounds are numbers."""
    return dict(sorted(parameters.items(), key=lambda entry: isinstance(entry[1].high, str)))


def _check_effect(settings: Settings) -> None:
    """Refuse a search in which nothing that is searched can matter."""
    resolved, tune = trial_settings(settings, {}), settings.tune
    truncation = [key for key in tune.space if key.startswith("truncation.")]
    if tune.measure == "truncation_f1" and tune.task not in MAZE_TASKS:
        raise BadParams(f"tune.measure: only a maze knows which steps are irreversible, and {tune.task} is none")
    if not truncation and tune.measure != "truncation_f1":
        return
    mode = resolved.truncation.mode
    if "truncation.mode" not in tune.space and mode == "none":
        raise BadParams(
            f"tune.variant: {tune.variant} has truncation.mode: none, so that no setting of truncation has any effect; "
            f"tune a variant with `truncation.mode: adaptive`"
        )
    if "retrace.weight" not in tune.space and resolved.retrace.weight == 0:
        raise BadParams(f"tune.variant: {tune.variant} has retrace.weight: 0, so that nothing is retraced or truncated")
    start = resolved.truncation.start
    if mode == "adaptive" and "truncation.start" not in tune.space and start >= resolved.train.env_steps:
        raise BadParams(
            f"tune.overrides: trials of {resolved.train.env_steps} environment steps end before truncation.start "
            f"({start}); set truncation.start lower or train.env_steps higher there"
        )


def _reason(refused: BadParams) -> str:
    """A refusal without the name of the variant that stands before it."""
    text = str(refused)
    return text.partition(": ")[2] if text.startswith("variants.") else text


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
