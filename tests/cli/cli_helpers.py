"""What tests of commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ruamel.yaml import YAML

from ccwm.settings.parsing import read_yaml

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-c", "from ccwm.cli.app import main; main()")
Answer = tuple[int, str, str]
Ccwm = Callable[..., Answer]


def spoil(project: Path, key: str, value: object) -> None:
    content = read_yaml(project / "params.yaml")
    section, _, field = key.partition(".")
    content[section][field] = value
    with (project / "params.yaml").open("w") as file:
        YAML(typ="safe").dump(content, file)
