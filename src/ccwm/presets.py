"""The settings that ship with ccwm, by name."""

from __future__ import annotations

from pathlib import Path

from ccwm.files import write_atomically
from ccwm.params import BadParams, guess, load_settings

PRESETS = Path("presets")


def preset_names(folder: Path = PRESETS) -> list[str]:
    """Names of all presets."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def preset_path(name: str, folder: Path = PRESETS) -> Path:
    """The file of a preset; BadParams with the nearest guess where there is none of this name."""
    names = preset_names(folder)
    if name not in names:
        raise BadParams(f"unknown preset {name!r}.{guess(name, names)}")
    return folder / f"{name}.yaml"


def summary(path: Path) -> str:
    """The first line of a preset: what it is for."""
    return path.read_text().split("\n", 1)[0].removeprefix("#").strip()


def apply_preset(name: str, target: Path, folder: Path = PRESETS) -> None:
    """Check the preset, then write it to ``target``."""
    path = preset_path(name, folder)
    load_settings(path)
    write_atomically(target, path.read_bytes())
