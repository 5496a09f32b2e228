"""From ``params.yaml`` to settings: read as DVC reads it, checked whole, refused with key, value and cure."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, JsonValue, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ccwm.config import Settings

LEARNING = ("model", "retrace", "truncation", "behaviour", "optimiser", "replay", "train")
"""Sections that a variant may override: those that only training reads, so that other stages need not know variants."""

STAGES: dict[str, tuple[str, ...]] = {
    "collect": ("env", "render", "collect"),
    "train": ("env", "render", *LEARNING, "trainer"),
    "evaluate": ("trainer", "evaluate"),
    "rollout-viz": ("trainer", "rollout"),
    "transfer": ("trainer", "transfer"),
    "report": ("study", "report"),
}
"""The sections that each stage reads; ``dvc.yaml`` lists the same ones, and a test compares the two."""

OBSERVERS = ("tracking",)
"""Sections that every stage may read and none depends on, because they cannot change a result."""


class BadParams(ValueError):
    """The settings are refused; the message names each key, what was given and what is allowed."""


def read_yaml(path: Path) -> dict[str, Any]:
    """A mapping from a YAML 1.2 file, by the loader that DVC uses."""
    try:
        content = YAML(typ="safe").load(path.read_text())
    except FileNotFoundError:
        raise BadParams(f"{path} is missing: `ccwm preset quick` writes one") from None
    except YAMLError as error:
        raise BadParams(f"{path} is no valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise BadParams(f"{path} must hold sections such as `study:`, it holds {type(content).__name__}")
    return content


def load_settings(path: Path) -> Settings:
    """Read and check the whole file, every variant included."""
    content = read_yaml(path)
    settings = parse(content, where=str(path))
    _refuse_left_out(content, settings, where=str(path))
    for variant in settings.variants:
        resolve(settings, variant)
    known = settings.variants
    for name in settings.study.variants:
        if name not in known:
            raise BadParams(f"{path}: study.variants: {name!r} is not defined.{_guess(name, known)}")
    for key in ("tasks", "variants", "seeds"):
        values = getattr(settings.study, key)
        if len(set(values)) != len(values):
            raise BadParams(f"{path}: study.{key}: {values} names one twice; each may stand once")
    return settings


def parse(content: dict[str, Any], *, where: str) -> Settings:
    """Check plain values against every bound."""
    try:
        return Settings.model_validate_json(json.dumps(content))
    except ValidationError as error:
        lines = [_explain(problem) for problem in error.errors()]
        raise BadParams(f"{where}:\n" + "\n".join(f"  {line}" for line in lines)) from None
    except TypeError as error:  # a value that JSON does not know, such as a date
        raise BadParams(f"{where}: {error}; settings are numbers, strings, lists and mappings") from None


def _refuse_left_out(content: dict[str, Any], settings: Settings, *, where: str) -> None:
    """Refuse a file that leaves a field out: with every value in the file, no default in the code can make a result."""
    missing = [
        f"  {name}.{field}: is missing; write the value out (by default it is {json.dumps(value)})"
        for name, section in settings.model_dump(mode="json").items()
        for field, value in section.items()
        if field not in content[name]
    ]
    if missing:
        raise BadParams(f"{where}:\n" + "\n".join(missing))


def resolve(settings: Settings, variant: str) -> Settings:
    """The settings with a variant's overrides (`retrace.weight: 0`) applied and checked."""
    if variant not in settings.variants:
        raise BadParams(f"unknown variant {variant!r}.{_guess(variant, settings.variants)}")
    content = settings.model_dump(mode="json")
    for key, value in settings.variants[variant].items():
        section, dot, field = key.partition(".")
        where = f"variants.{variant}.{key}"
        if section not in LEARNING or not dot:
            raise BadParams(
                f"{where}: a variant overrides `section.field` with a section of {', '.join(LEARNING)}, "
                f"because only training knows variants"
            )
        if field not in content[section]:
            raise BadParams(f"{where}: `{section}` has no field {field!r}.{_guess(field, content[section])}")
        content[section][field] = value
    return parse(content, where=f"variants.{variant}")


def for_stage(settings: Settings, stage: str) -> Settings:
    """A view that gives just the sections that the stage declares, so that an undeclared read cannot go unnoticed."""
    return cast(Settings, _StageView(settings, stage))


class _StageView:
    def __init__(self, settings: Settings, stage: str) -> None:
        self._settings, self._stage = settings, stage

    def __getattr__(self, section: str) -> BaseModel:
        if section not in (*STAGES[self._stage], *OBSERVERS):
            raise AttributeError(f"stage {self._stage} reads `{section}` without declaring it in params.STAGES")
        value: BaseModel = getattr(self._settings, section)
        return value


def stage_values(settings: Settings, stage: str) -> dict[str, JsonValue]:
    """What the stage reads, as plain values."""
    content = settings.model_dump(mode="json")
    return {section: content[section] for section in STAGES[stage]}


def settings_hash(settings: Settings, stage: str, **identity: str | int) -> str:
    """Twelve hexadecimal digits that change with anything that the stage reads, or with its task, variant or seed."""
    canonical = json.dumps([stage_values(settings, stage), identity], sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def json_schema() -> str:
    """The JSON schema of ``params.yaml``."""
    return json.dumps(Settings.model_json_schema(), indent=2) + "\n"


def _explain(problem: Any) -> str:
    """One line for one pydantic problem: path, what is allowed, what was given."""
    path = ".".join(str(part) for part in problem["loc"]) or "(top level)"
    if problem["type"] == "missing":
        return f"{path}: is missing; every section and every field without a default must be there"
    if problem["type"] == "extra_forbidden":
        return f"{path}: is not a known key.{_guess(str(problem['loc'][-1]), _siblings(problem['loc'][:-1]))}"
    given = json.dumps(problem["input"])
    shown = given if len(given) < 80 else given[:77] + "..."
    return f"{path}: {problem['msg'].removeprefix('Value error, ')}, got {shown}"


def _siblings(path: tuple[Any, ...]) -> list[str]:
    """The keys that are known where an unknown one was found."""
    model: Any = Settings
    for part in path:
        field = getattr(model, "model_fields", {}).get(part)
        model = field.annotation if field else None
    return list(getattr(model, "model_fields", {}))


def _guess(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    listed = f" Known: {', '.join(names)}." if names else ""
    return (f" Did you mean {close[0]!r}?" if close else "") + listed
