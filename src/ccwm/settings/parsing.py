"""From YAML to settings: read as DVC reads it, every bound checked; an error names the key, the value and the hint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent

from ccwm.errors import UserError, did_you_mean
from ccwm.settings.reference import allowed, known_keys, known_path
from ccwm.settings.schema import Settings

RENAMED = {
    "behaviour": "actor_critic",
    "states": "latents",
    "render.quality": "env.render_quality",
    "model.first_weights": "model.init",
    "model.image_scale": "model.observation_scale",
    "model.kl_scale": "model.kl_dynamics and model.kl_representation",
    "optimiser.model": "optimiser.model_lr",
    "optimiser.critic": "optimiser.critic_lr",
    "optimiser.actor": "optimiser.actor_lr",
    "optimiser.epsilon": "optimiser.eps",
    "optimiser.clip": "optimiser.grad_clip",
    "actor_critic.trace": "actor_critic.return_lambda",
    "actor_critic.starts": "actor_critic.starts_per_window",
}
"""Keys that older files have, and what they are called now."""


class BadParams(UserError):
    """The settings are refused; the message names each key, what was given and what is allowed."""


LARGEST, MOST, DEEPEST, LONGEST = 1 << 16, 4_000, 12, 100
"""Bytes of a file of settings, keys and values in it, sections within sections, and characters of a number."""


def read_yaml(path: Path, *, bounded: bool = True) -> dict[str, Any]:
    """A mapping from a YAML 1.2 file, by the loader that DVC uses; ``bounded`` by what settings can need."""
    try:
        if bounded and path.stat().st_size > LARGEST:
            raise BadParams(f"{path} has {path.stat().st_size:,} bytes, settings have at most {LARGEST:,}")
        text = path.read_text(encoding="utf-8")
        if bounded:
            _check_events(text, path)
        content = YAML(typ="safe").load(text)
    except FileNotFoundError:
        hint = "run at the project's root; `ccwm preset` lists files to start from"
        raise BadParams(f"{path} is missing", hint=hint) from None
    except DuplicateKeyError as error:
        raise BadParams(f"{path}: line {error.problem_mark.line + 1}: {error.problem.split(' with')[0]}") from None
    except (YAMLError, ValueError, RecursionError, AttributeError, TypeError, KeyError, IndexError) as error:
        raise BadParams(f"{path} is no valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise BadParams(f"{path} must hold sections such as `study:`, it holds {type(content).__name__}")
    return content


def _check_events(text: str, path: Path) -> None:
    """Refuse what grows when it is built, before it is: aliases, nesting, and numbers of many digits."""
    depth = 0
    if re.search(rf"([\[{{]\s*){{{DEEPEST + 1}}}", text):  # before the parser, which takes seconds for many of them
        raise BadParams(f"{path}: nested more than {DEEPEST} deep")
    for number, event in enumerate(YAML(typ="safe").parse(text)):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        where = f"{path}: line {event.start_mark.line + 1}"
        if isinstance(event, AliasEvent):
            raise BadParams(f"{where}: *{event.anchor}: settings have no aliases; write the values out")
        if number > MOST:
            raise BadParams(f"{where}: more than {MOST:,} keys and values")
        if depth > DEEPEST:
            raise BadParams(f"{where}: nested more than {DEEPEST} deep")
        if isinstance(event, ScalarEvent) and len(event.value) > LONGEST and event.value[:2].strip("+-.")[:1].isdigit():
            raise BadParams(f"{where}: a number of {len(event.value):,} characters, at most {LONGEST}")


def parse(content: dict[str, Any], *, where: str) -> Settings:
    """Check plain values against every bound."""
    try:
        return Settings.model_validate_json(json.dumps(content))
    except ValidationError as error:
        renamed = {new_name(section) for section in content}
        problems = [each for each in error.errors() if each["type"] != "missing" or each["loc"][0] not in renamed]
        raise bad_params(where, (line for problem in problems for line in _explain(problem))) from None
    except (TypeError, ValueError) as error:  # a value that JSON does not know, such as a date
        raise BadParams(f"{where}: {error}; settings are numbers, text, lists and sections") from None


def bad_params(where: str, problems: Iterable[str]) -> BadParams:
    """One problem on the line of the file's name, several below it, each line once."""
    lines = list(dict.fromkeys(problems))
    return BadParams(f"{where}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{where}:", *lines]))


def _explain(problem: ErrorDetails) -> list[str]:
    """One line for one pydantic problem (path, what is allowed, what was given), or one for each renamed key."""
    path, given = problem["loc"], problem["input"]
    name = ".".join(map(str, known_path(path)))
    match problem["type"]:
        case "missing" if isinstance(path[-1], str):
            return [f"{name}: is missing; its value is {allowed(path)}"]
        case "missing":  # an element of a list whose length is fixed
            name, rule = ".".join(map(str, path[:-1])), f"must be {allowed(path[:-1])}"
        case "extra_forbidden":
            key = ".".join(map(str, path))
            below = [f"{key}.{field}" for field in given] if isinstance(given, dict) else []
            moved = [unknown_key(each, ()) for each in below if new_name(each) in RENAMED.values()]
            return moved if moved and not new_name(key) else [unknown_key(key, known_keys(path[:-1])), *moved]
        case "value_error":
            rule = problem["msg"].removeprefix("Value error, ")
            if not path:  # a rule between sections, which names its keys itself
                return [rule]
        case kind:
            rule = f"must be {'finite, ' if kind == 'finite_number' else ''}{allowed(path)}"
    text = json.dumps(given, ensure_ascii=False)
    return [f"{name}: {rule}, got {text if len(text) < 80 else f'{text[:77]}...'}"]


def new_name(key: str) -> str | None:
    """What a section or a `section.field` of an older file is called now; None where it was not renamed."""
    section, dot, field = key.partition(".")
    moved = f"{RENAMED.get(section, section)}{dot}{field}"
    now = RENAMED.get(key) or RENAMED.get(moved, moved)
    return now if now != key else None


def unknown_key(key: str, known: Iterable[str]) -> str:
    """What to say of a key that no section has: its new name where it was renamed, else the nearest known one."""
    if now := new_name(key):
        return f"{key}: is now called {now}"
    return f"{key}: is not a known key.{did_you_mean(key.rpartition('.')[2], known)}"
