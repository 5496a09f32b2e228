"""Pictures and videos that a command writes, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ccwm.errors import UserError


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A place to write to that becomes ``path`` at the end; it has the same suffix, which chooses the format."""
    temporary = path.with_name(f".{path.stem}.tmp{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_pixels(observation: np.ndarray) -> np.ndarray:
    """The same array; UserError unless it is a sequence of images, uint8 [T, height, width, 3]."""
    if observation.dtype != np.uint8 or observation.ndim != 4:
        raise UserError(
            f"observations of {observation.dtype} {list(observation.shape[1:])} are no images that a video could show",
            hint="--sheet plots a state over time; `ccwm play` renders what an agent plays",
        )
    return observation


def check_path(path: Path, suffix: str) -> None:
    """UserError unless a file of this kind can be written there."""
    if path.suffix != suffix or not path.parent.is_dir():
        raise UserError(f"{path} must be a {suffix} file in a directory that exists")
