"""Points of the space as settings: what a trial trains with, which points come first, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from ccwm.envs.tasks import MAZE_TASKS, check_task
from ccwm.errors import did_you_mean
from ccwm.settings.parsing import BadParams
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.tune import Parameter
from ccwm.settings.variants import OVERRIDABLE, resolve
from ccwm.tuning.space import Point, Space

MEASURED = {"train.env_steps", "train.evaluate_every", "train.evaluate_episodes"}
"""Settings that change what is measured, so that trials with different ones could not be compared."""
MOST_CORNERS = 2048


def trial_settings(settings: Settings, point: Point) -> Settings:
    """The settings that a trial is trained with: the variant's, with ``tune.overrides`` and the point, checked.

    A trial always trains on one device: ``trainer.devices`` lets processes share a batch, while the parallelism of a
    search is more trials at the same time.
    """
    variant, variants = settings.tune.variant, settings.variants
    if variant in variants:
        variants = {**variants, variant: {**variants[variant], **settings.tune.overrides, **point}}
    resolved = resolve(settings.model_copy(update={"variants": variants}), variant)
    trainer = resolved.trainer.model_copy(update={"devices": 1, "strategy": "auto"})
    return resolved.model_copy(update={"trainer": trainer})


def anchors(settings: Settings, space: Space) -> dict[str, tuple[Point, list[str]]]:
    """The points that come first, and what had to be moved into the space, by name.

    `default` are the settings as they stand and `paper` its preset's; `default, paper` where both are the same point.
    """
    paper, variant = load_preset("paper"), settings.tune.variant
    paper = resolve(paper, variant) if variant in paper.variants else paper
    (default, moved), (papers, papers_moved) = (
        space.clip({key: attrgetter(key)(values) for key in space.parameters})
        for values in (trial_settings(settings, {}), paper)
    )
    if default == papers:
        return {"default, paper": (default, [*moved, *papers_moved])}
    return {"default": (default, moved), "paper": (papers, papers_moved)}


def nested(point: Point) -> dict[str, Any]:
    """Dotted keys as sections."""
    sections: dict[str, Any] = {}
    for key, value in point.items():
        section, _, field = key.partition(".")
        sections.setdefault(section, {})[field] = value
    return sections


def make_space(settings: Settings) -> Space:
    """The space of ``tune.space``; BadParams where a key or a bound is unknown or a corner would not validate."""
    tune = settings.tune
    check_task(tune.task)
    for where, keys in (("tune.space", tune.space), ("tune.overrides", tune.overrides)):
        for key in keys:
            _check_key(key, where, settings)
    for key in tune.space.keys() & MEASURED:
        raise BadParams(f"tune.space: {key} changes what is measured, so that trials could not be compared")
    base = trial_settings(settings, {})
    resolved = {key: _bounded(key, parameter, tune.space, base) for key, parameter in tune.space.items()}
    space = Space(dict(sorted(resolved.items(), key=lambda entry: isinstance(entry[1].high, str))))
    corners = space.corners()
    for point in corners[:: -(-len(corners) // MOST_CORNERS)]:
        try:
            trial_settings(settings, point)
        except BadParams as error:
            shown = ", ".join(f"{key} = {value}" for key, value in point.items())
            reason = str(error).removeprefix(f"variants.{tune.variant}: ")
            raise BadParams(f"tune.space reaches {shown}, which the settings refuse: {reason}") from None
    _check_effect(settings, base)
    return space


def _check_key(key: str, where: str, settings: Settings) -> None:
    section = key.partition(".")[0]
    fields = type(getattr(settings, section)).model_fields if section in OVERRIDABLE else ()
    known = [f"{section}.{field}" for field in fields]
    if key not in known:
        sections = f"keys are `section.field` with a section of {', '.join(OVERRIDABLE)}"
        raise BadParams(f"{where}: {key!r} is no setting of training; {sections}.{did_you_mean(key, known)}")


def _bounded(key: str, parameter: Parameter, space: Mapping[str, Parameter], settings: Settings) -> Parameter:
    """The parameter; a high that names a setting outside the space is replaced by that setting's value."""
    other, where = parameter.high, f"tune.space.{key}.high"
    if not isinstance(other, str):
        return parameter
    assert parameter.low is not None
    if other not in space:
        _check_key(other, where, settings)
        high = attrgetter(other)(settings)
        if isinstance(high, bool) or not isinstance(high, int | float) or high <= parameter.low:
            raise BadParams(f"{where}: {other} is {high}, which is no number above the low of {parameter.low}")
        return parameter.model_copy(update={"high": float(high)})
    named = space[other]
    if named.low is None or isinstance(named.high, str):
        raise BadParams(f"{where}: {other} has no bounds of its own; name a float or an int that has")
    if parameter.low > named.low:
        raise BadParams(f"{where}: {other} may be {named.low:g}, which is below {key}'s low of {parameter.low:g}")
    return parameter


def _check_effect(settings: Settings, base: Settings) -> None:
    """Refuse a search in which nothing that is searched can matter."""
    tune, mode, start = settings.tune, base.truncation.mode, base.truncation.start
    if tune.measure == "truncation_f1" and tune.task not in MAZE_TASKS:
        raise BadParams(f"tune.measure: only a maze knows which steps are irreversible, and {tune.task} is none")
    if tune.measure != "truncation_f1" and not any(key.startswith("truncation.") for key in tune.space):
        return
    if "truncation.mode" not in tune.space and mode == "none":
        raise BadParams(f"tune.variant: {tune.variant} has truncation.mode: none, so that truncation has no effect")
    if "retrace.weight" not in tune.space and base.retrace.weight == 0:
        raise BadParams(f"tune.variant: {tune.variant} has retrace.weight: 0, so that nothing is retraced or truncated")
    if mode == "adaptive" and "truncation.start" not in tune.space and start >= base.train.env_steps:
        budget = f"trials of {base.train.env_steps} environment steps"
        raise BadParams(f"tune.overrides: {budget} end before truncation.start ({start}): set one of them there")
