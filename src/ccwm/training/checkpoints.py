"""Checkpoints that are whole, checked and free of code; a SHA-256 stands beside each, and the last two are kept."""

from __future__ import annotations

import hashlib
import io
import logging
from pathlib import Path
from typing import Any

import torch

from ccwm.files import write_atomically
from ccwm.refusal import Refusal

VERSION = 1
KEPT = 2
log = logging.getLogger(__name__)


class NoCheckpoint(Refusal, RuntimeError):
    """There are checkpoints, but none of them can be used."""


class Checkpoints:
    """The checkpoints of one work directory, numbered in the order of their writing: none is ever overwritten."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def save(self, content: dict[str, Any]) -> None:
        """Write a checkpoint, then forget all but the last two."""
        buffer = io.BytesIO()
        torch.save({"version": VERSION, **content}, buffer)
        data = buffer.getvalue()
        paths = self._paths()
        path = self.directory / f"{int(paths[-1].stem) + 1 if paths else 0:06d}.pt"
        checksum = path.with_suffix(".sha256")
        # The sum first: a kill in between leaves a sum without a checkpoint, which nobody takes for a damaged one.
        write_atomically(checksum, hashlib.sha256(data).hexdigest().encode())
        try:
            write_atomically(path, data)
        except BaseException:
            checksum.unlink()
            raise
        for old in self._paths()[:-KEPT]:
            old.with_suffix(".sha256").unlink(missing_ok=True)
            old.unlink()

    def latest(self) -> dict[str, Any] | None:
        """The newest checkpoint that is whole; None if there is none at all, NoCheckpoint if all are damaged."""
        paths = self._paths()
        for path in reversed(paths):
            try:
                return self._load(path)
            except Exception as error:  # whatever is wrong with this file, an older one may be whole
                log.warning("checkpoint %s is left out: %s", path, error)
        if paths:
            raise NoCheckpoint(
                f"none of the {len(paths)} checkpoints in {self.directory} is whole; remove it to restart"
            )
        return None

    def _paths(self) -> list[Path]:
        return sorted(self.directory.glob("*.pt"))

    def _load(self, path: Path) -> dict[str, Any]:
        data = path.read_bytes()
        checksum = path.with_suffix(".sha256")
        if not checksum.is_file() or checksum.read_text().strip() != hashlib.sha256(data).hexdigest():
            raise ValueError("its SHA-256 is missing or different")
        content: dict[str, Any] = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        if content.get("version") != VERSION:
            raise ValueError(f"it has version {content.get('version')}, this ccwm reads {VERSION}")
        return content
