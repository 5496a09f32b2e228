"""One episode is one safetensors file: how it is written whole, read, checked, and read in part."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ccwm.files import write_atomically
from ccwm.structs import Episode

SCHEMA: Final = 1
# One metadata key only: safetensors writes several in random order, and equal episodes must be equal files.
SCHEMA_KEY = "ccwm.episode"
LARGEST_HEADER = 1 << 20

DTYPES: dict[str, np.dtype[Any]] = {
    "image": np.dtype(np.uint8),
    "action": np.dtype(np.float32),
    "reward": np.dtype(np.float32),
    "is_first": np.dtype(np.bool_),
    "continues": np.dtype(np.float32),
    "irreversible": np.dtype(np.bool_),
}


class DamagedEpisode(ValueError):
    """A file that is no whole, valid episode; the message names it and the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is no valid episode: {reason}")
        self.path = path
        self.reason = reason


def write_episode(path: Path, episode: Episode) -> str:
    """Write a valid episode of L steps to ``path`` atomically and return the file's SHA-256."""
    reason = fault(episode._asdict())
    if reason:
        raise ValueError(f"cannot store this episode as {path}: {reason}")
    arrays = {name: np.ascontiguousarray(array) for name, array in episode._asdict().items()}
    data = save(arrays, {SCHEMA_KEY: str(SCHEMA)})
    write_atomically(path, data)
    return hashlib.sha256(data).hexdigest()


def read_episode(path: Path) -> Episode:
    """The whole episode in ``path``, checked; DamagedEpisode where it is none."""
    return parse_episode(path.read_bytes(), path)


def parse_episode(data: bytes, path: Path) -> Episode:
    """The episode in a file's bytes; ``path`` is only named in the error."""
    try:
        arrays = load(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a dtype that numpy has no name for
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
    if set(arrays) != set(DTYPES):
        return f"it holds {sorted(arrays)}, an episode holds {sorted(DTYPES)}"
    for name, dtype in DTYPES.items():
        if arrays[name].dtype != dtype:
            return f"{name} is {arrays[name].dtype}, not {dtype}"
    image, action = arrays["image"], arrays["action"]
    if image.ndim != 4 or image.shape[1] != image.shape[2] or image.shape[3] != 3 or image.size == 0:
        return f"image has shape {image.shape}, not [L, size, size, 3]"
    length = len(image)
    if action.ndim != 2 or len(action) != length or action.size == 0:
        return f"action has shape {action.shape}, not [{length}, A]"
    for name in ("reward", "is_first", "continues", "irreversible"):
        if arrays[name].shape != (length,):
            return f"{name} has shape {arrays[name].shape}, not [{length}]"
    for name in ("action", "reward", "continues"):
        if not np.isfinite(arrays[name]).all():
            return f"{name} holds NaN or inf"
    for name in ("is_first", "irreversible"):
        if (arrays[name].view(np.uint8) > 1).any():
            return f"{name} holds bytes that are no booleans"
    if action[0].any():
        return "action[0] is not zero, though no action led to a reset's image"
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
        data_start, tensors = _header(file, path)
        for name, target in window._asdict().items():
            length, row_bytes = len(target), target[0].nbytes
            if start + length > tensors[name]["shape"][0]:
                raise IndexError(f"steps {start} to {start + length} reach past the end of {path}")
            file.seek(data_start + tensors[name]["data_offsets"][0] + start * row_bytes)
            data = file.read(length * row_bytes)
            if len(data) < length * row_bytes:
                raise DamagedEpisode(path, "it is shorter than its header says")
            target[:] = np.frombuffer(data, target.dtype).reshape(target.shape)


def _header(file: BinaryIO, path: Path) -> tuple[int, dict[str, Any]]:
    """Where the tensors' bytes start, and each one's shape and offsets."""
    size = int.from_bytes(file.read(8), "little")
    if not 0 < size <= LARGEST_HEADER:
        raise DamagedEpisode(path, "it has no safetensors header")
    try:
        tensors: dict[str, Any] = json.loads(file.read(size))
    except ValueError as error:
        raise DamagedEpisode(path, f"its header is no JSON ({error})") from error
    return 8 + size, tensors
