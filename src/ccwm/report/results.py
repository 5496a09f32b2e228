"""The tree of result files, read one cell at a time; ``docs/results.md`` explains every key."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

STAGES = ("collect", "train", "evaluate", "rollout-viz", "transfer")


@dataclass(frozen=True)
class Cell:
    """One execution of a stage: a task, a variant (none for ``collect``) and a seed, in its folder."""

    stage: str
    task: str
    variant: str | None
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        """The name that DVC gives this execution, as in ``evaluate@walker_walk-ccwm-0``."""
        parts = [self.task, *([self.variant] if self.variant is not None else []), str(self.seed)]
        return f"{self.stage}@{'-'.join(parts)}"

    @property
    def present(self) -> bool:
        """Whether the stage has published its metrics here."""
        return (self.folder / "metrics.json").is_file()

    @property
    def cure(self) -> str:
        """What helps where a file of the stage cannot be used."""
        return f"write it anew with `dvc repro --force {self.name}`"

    def has(self, files: list[str]) -> bool:
        """Whether all these files are there."""
        return all((self.folder / file).is_file() for file in files)

    def metrics(self) -> dict[str, Any]:
        """All of ``metrics.json``; empty where the stage has not run."""
        return self._json("metrics.json")

    def run(self) -> dict[str, Any]:
        """All of ``run.json``; empty where it is missing."""
        return self._json("run.json")

    def number(self, key: str) -> float | None:
        """A finite number of ``metrics.json``; None where it is missing, null or not finite."""
        return finite(self.metrics().get(key))

    def table(self, file: str, columns: list[str]) -> pd.DataFrame | None:
        """A CSV file that must have the given columns; None where it is missing or has no row."""
        path = self.folder / file
        if not path.is_file():
            return None
        try:
            frame = pd.read_csv(path)
        except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a readable CSV ({error}); {self.cure}") from error
        if absent := [column for column in columns if column not in frame.columns]:
            raise ValueError(f"{path} lacks the column {absent[0]!r}; {self.cure}")
        return frame if len(frame) else None

    def _json(self, file: str) -> dict[str, Any]:
        path = self.folder / file
        if not path.is_file():
            return {}
        try:
            value = json.loads(path.read_text("utf-8"))
        except ValueError as error:  # bad JSON and bad UTF-8 alike
            raise ValueError(f"{path} is not valid JSON ({error}); {self.cure}") from error
        if not isinstance(value, dict):
            raise ValueError(f"{path} holds no JSON object; {self.cure}")
        return value


@dataclass(frozen=True)
class Results:
    """The whole comparison: every cell of tasks × variants × seeds, there or not."""

    root: Path
    tasks: list[str]
    variants: list[str]
    seeds: list[int]

    @property
    def reference(self) -> str:
        """The variant that all others are compared with: the first one listed."""
        return self.variants[0]

    def cell(self, stage: str, task: str, variant: str | None, seed: int) -> Cell:
        """The cell of one execution, whether it has run or not."""
        parts = [task, *([variant] if variant is not None else []), str(seed)]
        return Cell(stage, task, variant, seed, self.root.joinpath(stage, *parts))

    def expected(self, stage: str, *, task: str | None = None, variant: str | None = None) -> list[Cell]:
        """Every cell that the stage should fill, in the order of the study; a task or variant narrows it."""
        tasks = self.tasks if task is None else [task]
        variants: list[str | None] = [None] if stage == "collect" else [*self.variants]
        if variant is not None:
            variants = [variant]
        return [self.cell(stage, t, v, s) for t in tasks for v in variants for s in self.seeds]

    def cells(self, stage: str, *, task: str | None = None, variant: str | None = None) -> list[Cell]:
        """The cells that are there."""
        return [cell for cell in self.expected(stage, task=task, variant=variant) if cell.present]

    def missing(self, stage: str) -> list[Cell]:
        """The cells that are not there."""
        return [cell for cell in self.expected(stage) if not cell.present]

    def missing_files(self, stage: str, files: list[str]) -> list[str]:
        """Files that a finished cell should have beside its metrics and has not, as ``name/file``."""
        return [
            f"{cell.name}/{file}" for cell in self.cells(stage) for file in files if not (cell.folder / file).is_file()
        ]

    def random_level(self, task: str) -> float | None:
        """Mean return of the random policy: as evaluated, else as collected."""
        evaluated = [cell.number("random_mean") for cell in self.cells("evaluate", task=task)]
        collected = [cell.number("return_mean") for cell in self.cells("collect", task=task)]
        return average(evaluated) if average(evaluated) is not None else average(collected)


def is_dirty(run: dict[str, Any]) -> bool:
    """Whether a run's code had uncommitted changes; the record says "true", "false" or "unknown"."""
    return str(run.get("dirty")).lower() == "true"


def finite(value: object) -> float | None:
    """The value as a float; None where it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def average(values: list[float | None]) -> float | None:
    """Mean of the values that are there; None where there is none."""
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None
