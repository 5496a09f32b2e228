"""``manifest.jsonl``: one line of JSON for each stored episode, in the order in which they were collected.

The line is written after its episode, so that an episode without a line was never reported as
written. A last line without its newline was torn by a kill; the next line replaces it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from ccwm.errors import UserError
from ccwm.files import append_line, sync_directory
from ccwm.replay.episodes import OBSERVATIONS, SCHEMA
from ccwm.settings.section import Section

MANIFEST = "manifest.jsonl"
Count = Annotated[int, Field(ge=1)]


class Entry(Section):
    """One line: what the store records of one episode."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

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
        self._ends = [0]  # where the first entry's line starts, and where each one's ends
        if create and not self.path.exists():
            # An empty manifest is written before the first episode, so that a missing one can only be a lost one.
            if any(directory.glob("*.safetensors")):
                hint = "restore it, or remove the directory"
                raise UserError(f"{directory} holds episodes but no {MANIFEST}", hint=hint)
            self.path.touch()
            sync_directory(directory)
        self.refresh()

    def append(self, entry: Entry) -> None:
        """Add one line and force it to disk; a line that cannot be written whole is taken back."""
        line = entry.model_dump_json().encode() + b"\n"
        self._ends.append(append_line(self.path, line, self._ends[-1], durable=True))
        self.entries.append(entry)

    def refresh(self) -> None:
        """Read the lines that were added since, by another process that is the directory's one writer."""
        *lines, _torn = self.path.read_bytes()[self._ends[-1] :].split(b"\n")
        for line in lines:
            try:
                entry = Entry.model_validate_json(line)
                if self.entries and entry.kind != self.entries[0].kind:
                    raise ValueError(f"{entry.kind} differs from {self.entries[0].kind} in line 1")
            except ValueError as error:  # pydantic's is one too
                problems = error.errors() if isinstance(error, ValidationError) else []
                told = "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}".strip() for e in problems) or error
                hint = "restore the file, or remove the directory and collect again"
                raise UserError(f"{self.path}, line {len(self._ends)}: {told}", hint=hint) from error
            self._ends.append(self._ends[-1] + len(line) + 1)
            self.entries.append(entry)

    def truncate(self, count: int) -> list[Entry]:
        """Forget all entries but the first ``count`` and return the forgotten ones."""
        forgotten = self.entries[count:]
        del self.entries[count:], self._ends[count + 1 :]
        with self.path.open("r+b") as file:
            file.truncate(self._ends[-1])
            os.fsync(file.fileno())
        return forgotten
