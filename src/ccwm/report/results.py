"""The results of a study: which cells are there, and what their readers give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ccwm.cells import STAGES, Cell, cells
from ccwm.errors import UserError
from ccwm.files import md5
from ccwm.readers import BadResult, MissingResult, read_object, reading
from ccwm.settings.parsing import read_yaml
from ccwm.settings.schema import Study
from ccwm.studies import components, embeddings, prediction, retracing, returns, transfer, truncation
from ccwm.studies.without_model import has_world_model
from ccwm.training import collect, history

MEASURED = tuple(stage for stage in STAGES if stage != "report")
"""The stages that have results."""
Read = TypeVar("Read")
LARGE = (prediction.read_observations, prediction.read_frames, retracing.read_retracing, embeddings.read_maps)
"""Readers of arrays, which are not kept."""
READERS: dict[str, tuple[Callable[[Path], Any], ...]] = {
    "collect": (collect.read_metrics, collect.read_returns),
    "train": (history.read_metrics, history.read_curve, history.read_losses),
    "evaluate": (returns.read_metrics, returns.read_returns),
    "rollout-viz": (
        *(prediction.read_metrics, prediction.read_errors, prediction.read_horizons, components.read_components),
        *(embeddings.read_numbers, truncation.read_truncation, *LARGE),
    ),
    "transfer": (transfer.read_metrics, transfer.read_returns),
}
"""What reads the files of each stage."""


def check_sums(root: Path, folder: Path, locked: Callable[[], Mapping[str, str]] | None = None) -> None:
    """Refuse files that are not those which ``run.json`` in the folder says were written, or ``locked`` without it.

    Where neither says anything they are refused too, unless there is no ``locked``.
    """
    made = None
    with suppress(BadResult):  # a clone has none, and a report does not depend on it
        made = read_object(folder / "run.json").get("files")
    sums = made if isinstance(made, dict) and made else locked() if locked else {}
    if not sums and locked:
        raise BadResult(f"neither {folder / 'run.json'} nor {root / 'dvc.lock'} says what its run has written")
    for name, digest in sums.items():
        path = root / name
        with reading(path, "result"):
            is_other = path.suffix in (".csv", ".json", ".safetensors") and path.is_file() and md5(path) != digest
        if is_other:
            raise BadResult(f"{path} is not the file that its run has written")


@dataclass(frozen=True)
class Results:
    """Every cell of a study, there or not, below the project's ``root``."""

    root: Path
    study: Study
    _read: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    _damage: dict[Cell, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def reference(self) -> str:
        """The variant that all others are compared with: the first one listed."""
        return self.study.variants[0]

    def expected(self, stage: str, *, task: str | None = None, variant: str | None = None) -> list[Cell]:
        """Every cell that the stage should fill; a task or variant narrows it.

        Where rollout-viz found no world model it had nothing to fill.
        """
        every = [cell for cell in cells(self.study, stage) if task in (None, cell.task)]
        return [cell for cell in every if variant in (None, cell.variant) and self._has_content(cell)]

    def _has_content(self, cell: Cell) -> bool:
        return cell.stage != "rollout-viz" or has_world_model(self.root / cell.results)

    def damage(self, cell: Cell) -> str:
        """Which file of a cell is not what its run has written, or cannot be read; empty where none is."""
        if cell not in self._damage:
            self._damage[cell] = self._find_damage(cell)
        return self._damage[cell]

    def _find_damage(self, cell: Cell) -> str:
        folder = self.root / cell.results
        try:
            check_sums(self.root, folder, lambda: self._locked.get(str(cell), {}))
            for reader in READERS[cell.stage]:
                with suppress(MissingResult):
                    self.read(cell, reader) if reader not in LARGE else reader(folder)
        except UserError as error:
            return error.message
        return ""

    @cached_property
    def _locked(self) -> dict[str, dict[str, str]]:
        """By cell, what dvc.lock says of its files: a clone has it, and no record of a run."""
        path = self.root / "dvc.lock"
        try:
            stages = read_yaml(path, bounded=False)["stages"] if path.is_file() else {}
            return {
                name: {str(out["path"]): str(out["md5"]) for out in entry["outs"]} for name, entry in stages.items()
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise BadResult(f"{path} is no lock file of DVC ({error!r})") from None

    def cells(
        self, stage: str, *, task: str | None = None, variant: str | None = None, files: Sequence[str] = ()
    ) -> list[Cell]:
        """The cells that have published their metrics, and the files, and of which nothing is damaged."""
        found = self.expected(stage, task=task, variant=variant)
        whole = [cell for cell in found if not self.absent(cell, ("metrics.json", *files))]
        return [cell for cell in whole if not self.damage(cell)]

    def absent(self, cell: Cell, files: Iterable[str]) -> list[str]:
        """Which of the files a cell does not have."""
        return [file for file in files if not (self.root / cell.results / file).is_file()]

    def missing(self, stage: str) -> list[str]:
        """The cells that are not there, by DVC's name."""
        return [str(cell) for cell in self.expected(stage) if self.absent(cell, ["metrics.json"])]

    def damaged(self, stage: str) -> dict[str, str]:
        """The cells that are in no number of the report because a file of theirs is damaged, and that file."""
        there = [cell for cell in self.expected(stage) if not self.absent(cell, ["metrics.json"])]
        return {str(cell): reason for cell in there if (reason := self.damage(cell))}

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
                raise type(error)(error.message, hint=hint) from error
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
