"""The results of a study: which cells are there, and what their readers give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ccwm.cells import STAGES, Cell, cells
from ccwm.errors import UserError
from ccwm.readers import BadResult
from ccwm.settings.schema import Study

MEASURED = tuple(stage for stage in STAGES if stage != "report")
"""The stages that have results."""
Read = TypeVar("Read")


@dataclass(frozen=True)
class Results:
    """Every cell of a study, there or not, below the project's ``root``."""

    root: Path
    study: Study
    _read: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def reference(self) -> str:
        """The variant that all others are compared with: the first one listed."""
        return self.study.variants[0]

    def expected(self, stage: str, *, task: str | None = None, variant: str | None = None) -> list[Cell]:
        """Every cell that the stage should fill; a task or variant narrows it."""
        every = cells(self.study, stage)
        return [cell for cell in every if task in (None, cell.task) and variant in (None, cell.variant)]

    def cells(
        self, stage: str, *, task: str | None = None, variant: str | None = None, files: Sequence[str] = ()
    ) -> list[Cell]:
        """The cells that have published their metrics, and the files."""
        found = self.expected(stage, task=task, variant=variant)
        return [cell for cell in found if not self.absent(cell, ("metrics.json", *files))]

    def absent(self, cell: Cell, files: Iterable[str]) -> list[str]:
        """Which of the files a cell does not have."""
        return [file for file in files if not (self.root / cell.results / file).is_file()]

    def missing(self, stage: str) -> list[str]:
        """The cells that are not there, by DVC's name."""
        return [str(cell) for cell in self.expected(stage) if self.absent(cell, ["metrics.json"])]

    def missing_files(self, stage: str, files: Iterable[str]) -> list[str]:
        """Files that a finished cell should have beside its metrics and has not, as ``cell/file``."""
        return [f"{cell}/{file}" for cell in self.cells(stage) for file in self.absent(cell, files)]

    def read(self, cell: Cell, reader: Callable[[Path], Read]) -> Read:
        """What a study's reader gives for the cell; a file is read once."""
        if (reader, cell) not in self._read:
            try:
                self._read[reader, cell] = reader(self.root / cell.results)
            except BadResult as error:
                hint = f"write it again with `dvc repro --force {cell}`"
                raise UserError(error.message, hint=hint) from error
        found: Read = self._read[reader, cell]
        return found

    def load(
        self, stage: str, task: str, reader: Callable[[Path], Read], files: Sequence[str] = ()
    ) -> dict[str, dict[Cell, Read]]:
        """What a reader gives for the cells of a task that have the files, by variant that has any."""
        found = {}
        for variant in self.study.variants:
            if there := self.cells(stage, task=task, variant=variant, files=files):
                found[variant] = {cell: self.read(cell, reader) for cell in there}
        return found
