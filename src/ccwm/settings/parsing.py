"""From YAML to settings: read as DVC reads it, every bound checked; an error names the key, the value and the hint."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import YAMLError

from ccwm.errors import UserError, did_you_mean
from ccwm.settings.reference import allowed, known_keys, known_path
from ccwm.settings.schema import Settings

RENAMED = {
    "behaviour": "actor_critic",
    "states": "latents",
    "render": "env",
    "render.quality": "env.render_quality",
    "model.first_weights": "model.init",
    "model.image_scale": "model.observation_scale",
    "optimiser.model": "optimiser.model_lr",
    "optimiser.critic": "optimiser.critic_lr",
    "optimiser.actor": "optimiser.actor_lr",
    "optimiser.epsilon": "optimiser.eps",
    "optimiser.clip": "optimiser.grad_clip",
    "actor_critic.trace": "actor_critic.return_lambda",
    "actor_critic.starts": "actor_critic.starts_per_window",
}
"""Keys that older files have, and what they are called now."""


class BadParams(UserError, ValueError):
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


def parse(content: dict[str, Any], *, where: str) -> Settings:
    """Check plain values against every bound."""
    try:
        return Settings.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise bad_params(where, (_explain(problem) for problem in error.errors())) from None
    except (TypeError, ValueError) as error:  # a value that JSON does not know, such as a date
        raise BadParams(f"{where}: {error}; settings are numbers, text, lists and sections") from None


def bad_params(where: str, problems: Iterable[str]) -> BadParams:
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
            return unknown_key(".".join(map(str, path)), known_keys(path[:-1]))
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


def unknown_key(key: str, known: Iterable[str]) -> str:
    """What to say of a key that no section has: its new name where it was renamed, else the nearest known one."""
    if key in RENAMED:
        return f"{key}: is now called {RENAMED[key]}"
    return f"{key}: is not a known key.{did_you_mean(key.rpartition('.')[2], known)}"
