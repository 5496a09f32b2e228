"""From ``params.yaml`` to settings: read as DVC reads it, checked whole, refused with key, value and cure."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import YAMLError

from ccwm.config import Settings
from ccwm.reference import allowed, known_keys, known_path
from ccwm.refusal import Refusal

LEARNING = ("model", "retrace", "truncation", "behaviour", "optimiser", "replay", "train")
"""Sections that a variant may override: those that only training reads, so that other stages need not know variants."""

STAGES: dict[str, tuple[str, ...]] = {
    "collect": ("env", "render", "collect"),
    "train": ("env", "render", *LEARNING, "trainer"),
    "evaluate": ("trainer", "evaluate"),
    "rollout-viz": ("trainer", "rollout", "states"),
    "transfer": ("trainer", "transfer"),
    "report": ("study", "report"),
}
"""The sections that each stage reads; ``dvc.yaml`` lists the same ones, and a test compares the two."""

OBSERVERS = ("tracking",)
"""Sections that every stage may read and none depends on, because they cannot change a result."""


class BadParams(Refusal, ValueError):
    """The settings are refused; the message names each key, what was given and what is allowed."""


def read_yaml(path: Path) -> dict[str, Any]:
    """A mapping from a YAML 1.2 file, by the loader that DVC uses."""
    try:
        content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadParams(
            f"{path} is missing: run at the project's root; `ccwm preset` lists files to start from"
        ) from None
    except DuplicateKeyError as error:
        raise BadParams(f"{path}: line {error.problem_mark.line + 1}: {error.problem.split(' with')[0]}") from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise BadParams(f"{path} is no valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise BadParams(f"{path} must hold sections such as `study:`, it holds {type(content).__name__}")
    return content


def load_settings(path: Path) -> Settings:
    """Read and check the whole file, every variant included."""
    return whole_settings(read_yaml(path), where=str(path))


def whole_settings(content: dict[str, Any], *, where: str) -> Settings:
    """Check all that a file must hold, every variant included."""
    settings = parse(content, where=where)
    _refuse_left_out(content, settings, where=where)
    for variant in settings.variants:
        resolve(settings, variant)
    known = settings.variants
    for name in settings.study.variants:
        if name not in known:
            raise BadParams(f"{where}: study.variants: {name!r} is not defined.{guess(name, known)}")
    for key in ("tasks", "variants", "seeds"):
        values = getattr(settings.study, key)
        if len(set(values)) != len(values):
            raise BadParams(f"{where}: study.{key}: {values} names one twice; each may stand once")
    return settings


def parse(content: dict[str, Any], *, where: str) -> Settings:
    """Check plain values against every bound."""
    try:
        return Settings.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise _refusal(where, (_explain(problem) for problem in error.errors())) from None
    except (TypeError, ValueError) as error:  # a value that JSON does not know, such as a date
        raise BadParams(f"{where}: {error}; settings are numbers, text, lists and sections") from None


def _refuse_left_out(content: dict[str, Any], settings: Settings, *, where: str) -> None:
    """Refuse a file that leaves a field out: with every value in the file, no default in the code can make a result."""
    missing = [
        f"{name}.{field}: is missing; write it out, its default is {json.dumps(value)}"
        for name, section in settings.model_dump(mode="json").items()
        for field, value in section.items()
        if field not in content[name]
    ]
    if missing:
        raise _refusal(where, missing)


def resolve(settings: Settings, variant: str) -> Settings:
    """The settings with a variant's overrides (`retrace.weight: 0`) applied and checked."""
    if variant not in settings.variants:
        raise BadParams(f"unknown variant {variant!r}.{guess(variant, settings.variants)}")
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
            raise BadParams(f"{where}: `{section}` has no field {field!r}.{guess(field, content[section])}")
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


def _refusal(where: str, problems: Iterable[str]) -> BadParams:
    """One problem on the line of the file's name, several below it; what reads alike is told once."""
    lines = list(dict.fromkeys(problems))
    return BadParams(f"{where}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{where}:", *lines]))


def _explain(problem: ErrorDetails) -> str:
    """One line for one pydantic problem: path, what is allowed, what was given."""
    path = problem["loc"]
    name = ".".join(map(str, known_path(path)))
    match problem["type"]:
        case "missing" if isinstance(path[-1], str):
            return f"{name}: is missing; its value is {allowed(path)}"
        case "missing":  # an element of a list whose length is fixed
            path, name = path[:-1], ".".join(map(str, path[:-1]))
        case "extra_forbidden":
            return f"{'.'.join(map(str, path))}: is not a known key.{guess(str(path[-1]), known_keys(path[:-1]))}"
        case "finite_number":
            return f"{name}: must be finite, {allowed(path)}, got {_shown(problem['input'])}"
        case "value_error" if not path:  # a rule between sections, which names its keys itself
            return problem["msg"].removeprefix("Value error, ")
        case "value_error":
            return f"{name}: {problem['msg'].removeprefix('Value error, ')}, got {_shown(problem['input'])}"
    return f"{name}: must be {allowed(path)}, got {_shown(problem['input'])}"


def _shown(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 80 else f"{text[:77]}..."


def guess(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, and all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    listed = f" Known: {', '.join(names)}." if names else ""
    return (f" Did you mean {close[0]!r}?" if close else "") + listed
