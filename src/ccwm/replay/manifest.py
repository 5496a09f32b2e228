"""``manifest.jsonl``: one line of JSON for each stored episode, in the order in which they were collected.

The line is written after its episode, so that an episode without a line was never reported as
written. A last line without its newline was torn by a kill; the next line replaces it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ccwm.errors import UserError
from ccwm.files import sync_directory
from ccwm.replay.episodes import OBSERVATIONS, SCHEMA

MANIFEST = "manifest.jsonl"
Count = Annotated[int, Field(ge=1)]


class Entry(BaseModel):
    """One line: what the store records of one episode."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, serialize_by_alias=True, validate_by_name=True
    )

    # The pattern keeps a manifest from naming a file outside its directory.
    name: Annotated[str, Field(pattern=r"^\d{6,}\.safetensors$")]
    steps: Count  # L, the reset included
    observation_shape: Annotated[tuple[Count, ...], Field(min_length=1)]  # of one step
    observation_dtype: Annotated[str, Field(pattern=f"^({'|'.join(OBSERVATIONS)})$")]
    action_size: Count  # A
    episode_return: Annotated[float, Field(alias="return")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    # `schema` would shadow a method of BaseModel.
    schema_version: Annotated[Literal[2], Field(alias="schema")] = SCHEMA

    @property
    def kind(self) -> tuple[object, ...]:
        """What all episodes of a store share."""
        return self.observation_dtype, self.observation_shape, self.action_size


class Manifest:
    """The entries on disk; append-only but for ``truncate``, with one writer at a time."""

    def __init__(self, directory: Path, *, create: bool) -> None:
        self.path = directory / MANIFEST
        self.entries: list[Entry] = []
        self._ends: list[int] = []  # byte offset behind each entry's line
        if create and not self.path.exists():
            self._create(directory)
        self.refresh()

    def append(self, entry: Entry) -> None:
        """Add one line and force it to disk; a line that cannot be written whole is taken back."""
        line = entry.model_dump_json().encode() + b"\n"
        with self.path.open("r+b", buffering=0) as file:
            file.truncate(self._end)  # cuts a torn line
            try:
                file.seek(self._end)
                written = file.write(line)
                if written != len(line):
                    raise OSError(f"only {written} of {len(line)} bytes could be written to {self.path}")
                os.fsync(file.fileno())
            except OSError:
                file.truncate(self._end)
                raise
        self._ends.append(self._end + len(line))
        self.entries.append(entry)

    def refresh(self) -> None:
        """Read the lines that were added since, by another process that is the directory's one writer."""
        *lines, _torn = self.path.read_bytes()[self._end :].split(b"\n")
        for number, line in enumerate(lines, start=len(self.entries) + 1):
            try:
                entry = Entry.model_validate_json(line)
            except ValidationError as error:
                problems = "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}".strip() for e in error.errors())
                raise self._damage(number, problems) from error
            if self.entries and entry.kind != self.entries[0].kind:
                raise self._damage(number, f"{entry.kind} differs from {self.entries[0].kind} in line 1")
            self._ends.append(self._end + len(line) + 1)
            self.entries.append(entry)

    def truncate(self, count: int) -> list[Entry]:
        """Forget all entries but the first ``count`` and return the forgotten ones."""
        forgotten = self.entries[count:]
        del self.entries[count:], self._ends[count:]
        with self.path.open("r+b") as file:
            file.truncate(self._end)
            os.fsync(file.fileno())
        return forgotten

    @property
    def _end(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _create(self, directory: Path) -> None:
        # An empty manifest is written before the first episode, so that a missing one can only be a lost one.
        if any(directory.glob("*.safetensors")):
            raise UserError(f"{directory} holds episodes but no {MANIFEST}", hint="restore it, or remove the directory")
        self.path.touch()
        sync_directory(directory)

    def _damage(self, number: int, problem: str) -> UserError:
        hint = "restore the file, or remove the directory and collect again"
        return UserError(f"{self.path}, line {number}: {problem}", hint=hint)
