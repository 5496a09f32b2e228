"""The settings that ship with ccwm, by name; a preset may extend another and say only what differs."""

from __future__ import annotations

from io import StringIO
from itertools import takewhile
from pathlib import Path

from ruamel.yaml import YAML

from ccwm.errors import did_you_mean
from ccwm.files import write_atomically
from ccwm.settings.loading import whole_settings
from ccwm.settings.parsing import BadParams, read_yaml, unknown_key
from ccwm.settings.schema import Settings

PRESETS = Path("presets")
EXTENDS = "extends"
"""The key of a preset that names the one it starts from."""


def preset_names(folder: Path = PRESETS) -> list[str]:
    """Names of all presets."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def preset_path(name: str, folder: Path = PRESETS) -> Path:
    """The file of a preset; BadParams with the nearest guess where there is none of this name."""
    names = preset_names(folder)
    if name not in names:
        raise BadParams(f"unknown preset {name!r}.{did_you_mean(name, names)}")
    return folder / f"{name}.yaml"


def summary(path: Path) -> str:
    """The first line of a preset: what it is for, or that it cannot be read."""
    try:
        return path.read_text("utf-8").split("\n", 1)[0].removeprefix("#").strip()
    except (UnicodeDecodeError, OSError) as error:
        return f"cannot be read ({error}): restore or remove {path}"


def preset_text(name: str, folder: Path = PRESETS) -> str:
    """The whole of ``params.yaml`` that a preset stands for: its own text, or its base's with its values put in."""
    path = preset_path(name, folder)
    own = read_yaml(path)
    if EXTENDS not in own:
        return path.read_text()
    base = preset_path(str(own[EXTENDS]), folder)
    if EXTENDS in read_yaml(base):
        raise BadParams(f"{path}: {EXTENDS}: {base.stem!r} extends another preset itself; name that one")
    layout = YAML()  # keeps comments, order and the form of numbers and lists
    layout.width = 120
    text = layout.load(base.read_text().removeprefix(_head(base)).lstrip("\n"))
    overlay = layout.load(path.read_text())
    del overlay[EXTENDS]
    for section, values in overlay.items():
        if section not in text:
            raise BadParams(f"{path}: {unknown_key(section, text)}")
        if not isinstance(values, dict):
            raise BadParams(f"{path}: {section}: must be a section of the fields that differ, got {values!r}")
        text[section].update(values)
    written = StringIO()
    layout.dump(text, written)
    return f"{_head(path)}\n{written.getvalue()}"


def load_preset(name: str, folder: Path = PRESETS) -> Settings:
    """The settings of a preset, checked whole."""
    return whole_settings(YAML(typ="safe").load(preset_text(name, folder)), where=f"preset {name!r}")


def apply_preset(name: str, target: Path, folder: Path = PRESETS) -> None:
    """Check the preset, then write it to ``target``."""
    load_preset(name, folder)
    write_atomically(target, preset_text(name, folder).encode())


def _head(path: Path) -> str:
    """The comment that opens a file."""
    return "".join(takewhile(lambda line: line.startswith("#"), path.read_text().splitlines(keepends=True)))
