"""From a point of the space to the settings of a trial, and from settings to a point."""

from __future__ import annotations

from typing import Any, NamedTuple

from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.tuning.space import Point, Space


class Anchor(NamedTuple):
    """A point that every study begins with, and what had to be moved into the space."""

    name: str
    point: Point
    moved: list[str]


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


def anchors(settings: Settings, space: Space) -> list[Anchor]:
    """The settings as they stand and the paper's values (its preset); one anchor where they are the same point."""
    paper, variant = load_preset("paper"), settings.tune.variant
    paper = resolve(paper, variant) if variant in paper.variants else paper
    default, papers = (
        Anchor(name, *space.clip({key: value_at(values, key) for key in space.parameters}))
        for name, values in (("default", trial_settings(settings, {})), ("paper", paper))
    )
    if default.point == papers.point:
        return [Anchor("default, paper", default.point, [*default.moved, *papers.moved])]
    return [default, papers]


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
