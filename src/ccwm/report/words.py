"""The report's prose, which stands in ``templates/words.toml``."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "templates" / "words.toml"


@functools.cache
def load() -> dict[str, dict[str, str]]:
    """All words, by section and name."""
    return tomllib.loads(FILE.read_text("utf-8"))


def say(section: str, name: str, **values: Any) -> str:
    """Words on one line, with their {names} filled in."""
    return " ".join(load()[section][name].format(**values).split())
