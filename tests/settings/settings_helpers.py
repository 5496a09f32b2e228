"""What tests of settings share: a file to spoil, and the refusal that follows."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import BadParams, read_yaml
from ccwm.settings.schema import Settings

ROOT = Path(__file__).parents[2]
GOOD = read_yaml(ROOT / "presets" / "smoke.yaml")
"""A good file's content; no test relies on its numbers."""


def edited(**changes: Any) -> dict[str, Any]:
    """GOOD with `section__field=value` changes."""
    content = copy.deepcopy(GOOD)
    for key, value in changes.items():
        section, _, field = key.partition("__")
        content[section][field] = value
    return content


def load(folder: Path, content: dict[str, Any]) -> Settings:
    """Write the content as a file and load it."""
    path = folder / "params.yaml"
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(content, file)
    return load_settings(path)


def refusal(folder: Path, content: dict[str, Any]) -> str:
    """What a person is told about this content, without the file's name."""
    with pytest.raises(BadParams) as caught:
        load(folder, content)
    return str(caught.value).removeprefix(f"{folder / 'params.yaml'}: ")
