"""The settings that ship with ccwm, by name."""

from __future__ import annotations

import difflib
from pathlib import Path

from ccwm.files import write_atomically
from ccwm.params import BadParams, load_settings

PRESETS = Path("presets")


def preset_names(folder: Path = PRESETS) -> list[str]:
    """Names of all presets."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def preset_path(name: str, folder: Path = PRESETS) -> Path:
    """The file of a preset; BadParams with the nearest guess where there is none of this name."""
    names = preset_names(folder)
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise BadParams(f"unknown preset {name!r}.{guess} Known: {', '.join(names)}.")
    return folder / f"{name}.yaml"


def summary(path: Path) -> str:
    """The first comment of a preset: what it is for."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def apply_preset(name: str, target: Path, folder: Path = PRESETS) -> None:
    """Check the preset, then write it to ``target``."""
    path = preset_path(name, folder)
    load_settings(path)
    write_atomically(target, path.read_bytes())
