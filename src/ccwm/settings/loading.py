"""``params.yaml`` as a whole: every key there, every variant sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ccwm.errors import did_you_mean
from ccwm.settings.parsing import BadParams, bad_params, parse, read_yaml
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve


def load_settings(path: Path) -> Settings:
    """Read and check the whole file, every variant included."""
    return whole_settings(read_yaml(path), where=str(path))


def whole_settings(content: dict[str, Any], *, where: str) -> Settings:
    """Check all that a file must hold, every variant included."""
    settings = parse(content, where=where)
    missing = [
        f"{name}.{field}: is missing; write it out, its default is {json.dumps(value)}"
        for name, section in settings.model_dump(mode="json").items()
        for field, value in section.items()
        if field not in content.get(name, {})
    ]
    if missing:  # with every value in the file, no default in the code can change a result
        raise bad_params(where, missing)
    for variant in settings.variants:
        resolve(settings, variant)
    for name in settings.study.variants:
        if name not in settings.variants:
            known = did_you_mean(name, settings.variants)
            raise BadParams(f"{where}: study.variants: {name!r} is not defined.{known}")
    return settings
