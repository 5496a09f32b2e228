"""Variants: named overrides of what only training reads."""

from __future__ import annotations

from ccwm.errors import did_you_mean
from ccwm.settings.agent import AgentConfig
from ccwm.settings.kinds import is_unread
from ccwm.settings.parsing import BadParams, new_name, parse, unknown_key
from ccwm.settings.schema import Settings

OVERRIDABLE = tuple(name for name in AgentConfig.model_fields if name not in ("env", "trainer"))
"""Sections that a variant may override: those that only training reads, so that other stages need not know variants."""


def resolve(settings: Settings, variant: str) -> Settings:
    """The settings with a variant's overrides (`retrace.weight: 0`) applied and checked."""
    if variant not in settings.variants:
        raise BadParams(f"unknown variant {variant!r}.{did_you_mean(variant, settings.variants)}")
    content, where = settings.model_dump(mode="json"), f"variants.{variant}"
    for key, value in settings.variants[variant].items():
        section, dot, field = key.partition(".")
        if not new_name(key) and (section not in OVERRIDABLE or not dot):
            rule = f"a variant overrides `section.field` with a section of {', '.join(OVERRIDABLE)}"
            raise BadParams(f"{where}.{key}: {rule}, because only training knows variants")
        if new_name(key) or field not in content[section]:
            raise BadParams(f"{where}: {unknown_key(key, content.get(section, ()))}")
        content[section][field] = value
    resolved = parse(content, where=where)
    kind = resolved.agent.kind
    for key in settings.variants[variant]:
        if is_unread(kind, key):
            raise BadParams(f"{where}.{key}: has no effect with agent.kind: {kind}; remove it, or choose another kind")
    return resolved
