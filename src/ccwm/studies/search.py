"""The files of one search for settings, `results/tune/<study>/`: what is in them, their writer and their reader."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from ccwm.errors import UserError, did_you_mean
from ccwm.files import write_csv, write_json
from ccwm.readers import FLAG, NUMBER, OPTIONAL, TEXT, BadResult, read_object, read_table

RESULTS = Path("results") / "tune"
STATES = ("complete", "pruned", "failed", "running")


@dataclass(frozen=True)
class TrialRow:
    """One trial that counts: a retry stands for all attempts, under the number of the last one."""

    trial: int
    first_number: int
    """The number of the first attempt, by which its checkpoints, agents and MLflow runs are found."""
    state: str
    anchor: str
    """`default` or `paper` (or both) for the trials with those values."""
    point: dict[str, Any]
    value: float | None
    seeds: dict[int, float]
    seconds: float | None = None
    commit: str = ""

    @property
    def sd(self) -> float | None:
        """Standard deviation over seeds."""
        return statistics.stdev(self.seeds.values()) if len(self.seeds) > 1 else None

    def line(self) -> dict[str, object]:
        """As a line of ``trials.csv``."""
        head = {"trial": self.trial, "first_number": self.first_number, "anchor": self.anchor, "state": self.state}
        seeds = {f"seed {seed}": value for seed, value in self.seeds.items()}
        return {**head, "value": self.value, "sd": self.sd, **self.point, **seeds}


@dataclass(frozen=True)
class Candidate:
    """One of the best trials (or the default settings), on the seeds of the search and on fresh ones."""

    searched: TrialRow
    fresh: TrialRow | None

    @property
    def fresh_value(self) -> float | None:
        """The mean over the fresh seeds, where they have been trained."""
        return self.fresh.value if self.fresh else None

    def line(self, *, winner: bool) -> dict[str, object]:
        """As a line of ``candidates.csv``."""
        searched, fresh = self.searched, self.fresh
        return {
            "trial": searched.trial,
            "anchor": searched.anchor,
            "winner": winner,
            **searched.point,
            "search_mean": searched.value,
            "search_sd": searched.sd,
            "fresh_mean": self.fresh_value,
            "fresh_sd": fresh.sd if fresh else None,
            **{f"fresh seed {seed}": value for seed, value in (fresh.seeds if fresh else {}).items()},
        }


@dataclass(frozen=True)
class Outcome:
    """A search at one moment."""

    rows: list[TrialRow]
    candidates: list[Candidate]

    @property
    def best(self) -> TrialRow | None:
        """The best complete trial on the seeds of the search."""
        complete = [row for row in self.rows if row.state == "complete" and row.value is not None]
        return max(complete, key=lambda row: (row.value, -row.first_number), default=None)

    @property
    def winner(self) -> Candidate | None:
        """The best candidate on fresh seeds; None until each has been trained on them or has failed there."""
        if any(each.fresh is None for each in self.candidates):
            return None
        checked = [each for each in self.candidates if each.fresh_value is not None]
        return max(checked, key=lambda each: (each.fresh_value, -each.searched.first_number), default=None)


@with_config(ConfigDict(strict=True, allow_inf_nan=False))
class Summary(TypedDict):
    """``study.json``."""

    study: str
    task: str
    variant: str
    overrides: dict[str, Any]
    measure: str
    measure_title: str
    sampler: str
    pruner: str
    seeds: list[int]
    fresh_seeds: list[int]
    space: dict[str, dict[str, Any]]
    """The searched settings: kind, low, high, log, choices."""
    trials: dict[str, int]
    """How many trials are in each state."""
    commits: list[str]
    importance: dict[str, float]
    winner: dict[str, Any] | None
    """The winner's line of ``candidates.csv`` and its `point`."""


SUMMARY = TypeAdapter(Summary)


@dataclass(frozen=True)
class Search:
    """The files of one search, read."""

    folder: Path
    summary: Summary
    trials: pd.DataFrame
    candidates: pd.DataFrame

    @property
    def keys(self) -> list[str]:
        """The searched settings."""
        return list(self.summary["space"])

    @property
    def winner(self) -> int | None:
        """The number of the trial that won."""
        found = self.summary["winner"]
        return None if found is None else int(found["trial"])

    @property
    def figures(self) -> dict[str, Path]:
        """The pictures of the search by name (`history`, `slice`, ...), as SVG files."""
        return {path.stem: path for path in sorted(self.folder.glob("*.svg"))}


def write_search(folder: Path, outcome: Outcome, summary: Mapping[str, object]) -> None:
    """Write ``trials.csv``, ``candidates.csv`` and ``study.json``, which is the summary and what the outcome adds."""
    won, states = outcome.winner, [row.state for row in outcome.rows]
    write_csv(folder / "trials.csv", (row.line() for row in outcome.rows))
    write_csv(folder / "candidates.csv", (each.line(winner=each is won) for each in outcome.candidates))
    added = {
        "trials": {state: states.count(state) for state in STATES},
        "commits": sorted({row.commit for row in outcome.rows if row.commit}),
        "winner": won and {**won.line(winner=True), "point": won.searched.point},
    }
    write_json(folder / "study.json", {**summary, **added})


def read_search(folder: Path) -> Search:
    """Read what a search has written."""
    summary = read_summary(folder)
    trials = _read_table(folder / "trials.csv", {"state": TEXT, "value": OPTIONAL, "sd": OPTIONAL})
    means = dict.fromkeys(("search_mean", "search_sd", "fresh_mean", "fresh_sd"), OPTIONAL)
    candidates = _read_table(folder / "candidates.csv", {"winner": FLAG, **means})
    return Search(folder, summary, trials, candidates)


def read_summary(folder: Path) -> Summary:
    """Read ``study.json`` alone; UserError where there is none."""
    path = folder / "study.json"
    if not path.is_file():
        known = sorted(each.parent.name for each in folder.parent.glob("*/study.json"))
        hint = f"`ccwm tune` writes it at the end of a search.{did_you_mean(folder.name, known)}"
        raise UserError(f"{path} is missing", hint=hint)
    try:
        return SUMMARY.validate_python(read_object(path))
    except ValidationError as error:
        found = error.errors()[0]
        raise BadResult(f"{path}: {'/'.join(map(str, found['loc']))!r}: {found['msg']}") from None


def _read_table(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """A table whose anchors are text, also where none is set."""
    table = read_table(path, {"trial": NUMBER, "anchor": TEXT, **columns})
    return table.assign(anchor=table["anchor"].astype("string").fillna(""))
