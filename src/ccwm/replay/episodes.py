"""One episode is one safetensors file: its bytes, its checks, and windows of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import load, save

from ccwm.episode import Episode
from ccwm.errors import UserError

SCHEMA: Final = 2
# One metadata key only: safetensors writes several in random order, and equal episodes must be equal files.
SCHEMA_KEY = "ccwm.episode"
LARGEST_HEADER = 1 << 20

OBSERVATIONS = ("uint8", "float32")
"""Dtypes of an observation: pixels, or a vector."""
DTYPES: dict[str, np.dtype[Any]] = {
    "action": np.dtype(np.float32),
    "reward": np.dtype(np.float32),
    "is_first": np.dtype(np.bool_),
    "continues": np.dtype(np.float32),
    "irreversible": np.dtype(np.bool_),
}


class DamagedEpisode(UserError, ValueError):
    """A file that is no whole, valid episode; the message names it and the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is no valid episode: {reason}")
        self.path = path
        self.reason = reason


def serialise_episode(episode: Episode) -> bytes:
    """A valid episode as a file's bytes; ValueError where it is none."""
    reason = fault(episode._asdict())
    if reason:
        raise ValueError(f"cannot store this episode: {reason}")
    arrays = {name: np.ascontiguousarray(array) for name, array in episode._asdict().items()}
    data: bytes = save(arrays, {SCHEMA_KEY: str(SCHEMA)})
    return data


def read_episode(path: Path) -> Episode:
    """The whole episode in ``path``, checked; DamagedEpisode where it is none."""
    return parse_episode(path.read_bytes(), path)


def parse_episode(data: bytes, path: Path) -> Episode:
    """The episode in a file's bytes; ``path`` is only named in the error."""
    try:
        arrays = load(data)
    except Exception as error:  # safetensors' own, and numpy's for a dtype that it has no name for
        raise DamagedEpisode(path, f"not a safetensors file that numpy can read ({error})") from error
    metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
    schema = metadata.get(SCHEMA_KEY)
    if schema != str(SCHEMA):
        raise DamagedEpisode(path, f"its metadata has {SCHEMA_KEY}={schema}, this version reads {SCHEMA}")
    reason = fault(arrays)
    if reason:
        raise DamagedEpisode(path, reason)
    return Episode(**arrays)


def fault(arrays: dict[str, np.ndarray]) -> str | None:
    """What keeps these arrays from being an episode, or None; see ``structs.Episode`` for the rules."""
    if set(arrays) != set(Episode._fields):
        return f"it holds {sorted(arrays)}, an episode holds {sorted(Episode._fields)}"
    observation, action = arrays["observation"], arrays["action"]
    if observation.dtype not in OBSERVATIONS:
        return f"observation is {observation.dtype}, not one of {', '.join(OBSERVATIONS)}"
    if observation.ndim < 2 or observation.size == 0:
        return f"observation has shape {observation.shape}, not [L, ...]"
    length = len(observation)
    for name, dtype in DTYPES.items():
        shape = (length, *action.shape[-1:]) if name == "action" else (length,)
        if arrays[name].dtype != dtype:
            return f"{name} is {arrays[name].dtype}, not {dtype}"
        if arrays[name].shape != shape or arrays[name].size == 0:
            return f"{name} has shape {arrays[name].shape}, not [{length}{', A' if name == 'action' else ''}]"
        if dtype == np.bool_ and (arrays[name].view(np.uint8) > 1).any():
            return f"{name} holds bytes that are no booleans"
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            return f"{name} holds NaN or inf"
    if action[0].any():
        return "action[0] is not zero, though no action led to a reset's observation"
    if not arrays["is_first"][0] or arrays["is_first"][1:].any():
        return "is_first must be true at step 0 and nowhere else"
    if not (arrays["continues"][:-1] == 1).all() or arrays["continues"][-1] not in (0, 1):
        return "continues must be 1, or 0 at the last step of an episode that terminated"
    return None


def read_window(path: Path, start: int, window: Episode) -> None:
    """Fill ``window``, arrays of T steps [T, ...] that may be strided, with steps start … start + T − 1 of the file.

    Plain reads of the window's own bytes: against memory maps they are faster and leave no pages of the file in this
    process's resident memory.
    """
    with path.open("rb") as file:
        size = min(int.from_bytes(file.read(8), "little"), LARGEST_HEADER)
        try:
            tensors = json.loads(file.read(size))
            places = {name: (tensors[name]["shape"][0], *tensors[name]["data_offsets"]) for name in window._fields}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise DamagedEpisode(path, f"it has no safetensors header of an episode ({error!r})") from error
        for name, target in window._asdict().items():
            length, row_bytes = len(target), target[0].nbytes
            steps, first, end = places[name]
            if end - first != steps * row_bytes:
                raise DamagedEpisode(path, f"its {name} is not {target.dtype} {list(target.shape[1:])} a step")
            if start + length > steps:
                raise IndexError(f"steps {start} to {start + length} reach past the end of {path}")
            file.seek(8 + size + first + start * row_bytes)
            data = file.read(length * row_bytes)
            if len(data) < length * row_bytes:
                raise DamagedEpisode(path, "it is shorter than its header says")
            target[:] = np.frombuffer(data, target.dtype).reshape(target.shape)
