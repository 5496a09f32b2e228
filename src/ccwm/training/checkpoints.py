"""Checkpoints that are whole, checked and free of code: the last two and the best, each with its SHA-256 beside it."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import JsonValue

from ccwm.errors import UserError
from ccwm.files import write_atomically

VERSION = 3
KEPT = 2
BEST = "best-"
log = logging.getLogger(__name__)


class NoCheckpoint(UserError, RuntimeError):
    """There are checkpoints, but none of them can be used."""


class OtherCheckpoint(UserError, RuntimeError):
    """A checkpoint is whole, but was made with other settings or by another version."""


class Checkpoints:
    """The checkpoints of one work directory, numbered in the order of their writing: none is ever overwritten.

    ``settings`` (dotted keys) go into each; one that was made with others is refused. None reads without comparing.
    """

    def __init__(self, directory: Path, settings: Mapping[str, JsonValue] | None = None) -> None:
        self.directory, self.settings = directory, settings
        directory.mkdir(parents=True, exist_ok=True)

    def save(self, content: dict[str, Any]) -> None:
        """Write a checkpoint, then delete all but the last two."""
        self._write("", content, kept=KEPT)

    def save_best(self, content: dict[str, Any]) -> None:
        """Write the checkpoint of the best evaluation so far, then delete the one before it."""
        self._write(BEST, content, kept=1)

    def latest(self) -> dict[str, Any] | None:
        """The newest checkpoint that is whole; None if there is none at all, NoCheckpoint if all are damaged."""
        return self._newest("")

    def best(self) -> dict[str, Any] | None:
        """The checkpoint of the best evaluation, on the same terms."""
        return self._newest(BEST)

    def _paths(self, prefix: str) -> list[Path]:
        return sorted(self.directory.glob(f"{prefix}[0-9]*.pt"))

    def _write(self, prefix: str, content: dict[str, Any], *, kept: int) -> None:
        buffer = io.BytesIO()
        torch.save({"version": VERSION, "settings": dict(self.settings or {}), **content}, buffer)
        data = buffer.getvalue()
        paths = self._paths(prefix)
        number = int(paths[-1].stem.removeprefix(prefix)) + 1 if paths else 0
        path = self.directory / f"{prefix}{number:06d}.pt"
        checksum = path.with_suffix(".sha256")
        # The sum first: a kill in between leaves a sum without a checkpoint, which no one takes for damage.
        write_atomically(checksum, hashlib.sha256(data).hexdigest().encode())
        try:
            write_atomically(path, data)
        except BaseException:
            checksum.unlink()
            raise
        for old in self._paths(prefix)[:-kept]:
            old.with_suffix(".sha256").unlink(missing_ok=True)
            old.unlink()

    def _newest(self, prefix: str) -> dict[str, Any] | None:
        paths = self._paths(prefix)
        for path in reversed(paths):
            try:
                content = self._load(path)
            except Exception as error:  # after any error here an older checkpoint may still be whole
                log.warning("checkpoint %s is left out: %s", path, error)
            else:
                self._refuse_other(path, content)
                return content
        if paths:
            raise NoCheckpoint(
                f"none of the {len(paths)} checkpoints in {self.directory} is whole", hint="remove it to restart"
            )
        return None

    def _load(self, path: Path) -> dict[str, Any]:
        data = path.read_bytes()
        checksum = path.with_suffix(".sha256")
        if not checksum.is_file() or checksum.read_text().strip() != hashlib.sha256(data).hexdigest():
            raise ValueError("its SHA-256 is missing or different")
        content: dict[str, Any] = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        return content

    def _refuse_other(self, path: Path, content: dict[str, Any]) -> None:
        """Name every field in which a whole checkpoint is not one of this run."""
        there: dict[str, JsonValue] = {"version": content.get("version")}
        here: dict[str, JsonValue] = {"version": VERSION}
        if self.settings is not None and there == here:
            there, here = content["settings"], dict(self.settings)
        differing = [
            f"{name} ({there.get(name)} there, {here.get(name)} here)"
            for name in sorted({*there, *here})
            if there.get(name) != here.get(name)
        ]
        if differing:
            raise OtherCheckpoint(
                f"{path} is not of this run ({', '.join(differing)})",
                hint=f"remove {self.directory} to restart, or run with the version and the settings that made it",
            )
