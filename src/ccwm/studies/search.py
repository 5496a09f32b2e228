"""A search for settings as files: trials, candidates and a summary, as `ccwm tune` writes and the report reads them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ccwm.errors import did_you_mean
from ccwm.files import write_csv, write_json
from ccwm.readers import OPTIONAL, TEXT, BadResult, read_object, read_table

RESULTS = Path("results") / "tune"
STATES = ("complete", "pruned", "failed", "running")
SUMMARY = (
    *("study", "task", "variant", "measure", "measure_title", "sampler", "pruner", "seeds", "fresh_seeds"),
    *("space", "trials", "commits", "importance", "winner"),
)
"""The keys of ``study.json``."""


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
        checked = [(each.fresh_value, -each.searched.first_number, each) for each in self.candidates]
        return max((each for each in checked if each[0] is not None), default=(None, 0, None))[2]

    def summary(self) -> dict[str, object]:
        """What ``study.json`` says of the trials and the winner."""
        won, states = self.winner, [row.state for row in self.rows]
        return {
            "trials": {state: states.count(state) for state in STATES},
            "commits": sorted({row.commit for row in self.rows if row.commit}),
            "winner": won and {**won.line(winner=True), "point": won.searched.point},
        }


@dataclass(frozen=True)
class Search:
    """One study of `ccwm tune`."""

    summary: dict[str, Any]
    trials: pd.DataFrame
    candidates: pd.DataFrame

    @property
    def keys(self) -> list[str]:
        """The searched settings."""
        return list(self.summary["space"])

    @property
    def numeric(self) -> list[str]:
        """The searched settings that are numbers."""
        return [key for key in self.keys if self.summary["space"][key]["kind"] != "choice"]

    @property
    def whole(self) -> pd.DataFrame:
        """The trials that came to their end."""
        return self.trials[self.trials["state"] == "complete"]

    @property
    def pruned(self) -> pd.DataFrame:
        """The trials that were pruned after they had reported something."""
        return self.trials[(self.trials["state"] == "pruned") & self.trials["value"].notna()]

    @property
    def winner(self) -> int | None:
        """The number of the trial that won."""
        found = self.summary["winner"]
        return None if found is None else int(found["trial"])

    def is_log(self, key: str) -> bool:
        """Whether the setting was searched over orders of magnitude."""
        return bool(self.summary["space"][key].get("log"))


def write_outcome(folder: Path, summary: Mapping[str, object], outcome: Outcome) -> None:
    """Write the files of a search; ``summary`` lacks what the outcome adds."""
    candidates = [each.line(winner=each is outcome.winner) for each in outcome.candidates]
    write_search(folder, {**summary, **outcome.summary()}, [row.line() for row in outcome.rows], candidates)


def write_search(
    folder: Path,
    summary: Mapping[str, object],
    trials: Sequence[Mapping[str, object]],
    candidates: Sequence[Mapping[str, object]],
) -> None:
    """Write ``trials.csv``, ``candidates.csv`` and ``study.json``."""
    write_csv(folder / "trials.csv", trials)
    write_csv(folder / "candidates.csv", candidates)
    write_json(folder / "study.json", summary)


def read_summary(folder: Path) -> dict[str, Any]:
    """Read ``study.json`` alone."""
    if not (folder / "study.json").is_file():
        known = sorted(each.parent.name for each in folder.parent.glob("*/study.json"))
        guess = did_you_mean(folder.name, known)
        raise BadResult(f"{folder / 'study.json'} is missing", hint=f"`ccwm tune` writes it at the end.{guess}")
    summary = read_object(folder / "study.json")
    if absent := [key for key in SUMMARY if key not in summary]:
        raise BadResult(f"{folder / 'study.json'} lacks the key {absent[0]!r}")
    return summary


def read_search(folder: Path) -> Search:
    """Read what a search has published; one that has no candidates yet has an empty table of them."""
    summary = read_summary(folder)
    trials = read_table(folder / "trials.csv", {"trial": OPTIONAL, "state": TEXT, "value": OPTIONAL, "anchor": TEXT})
    candidates = pd.DataFrame(columns=["trial", "anchor", "winner"])
    if (folder / "candidates.csv").stat().st_size > 1:
        means = dict.fromkeys(("search_mean", "search_sd", "fresh_mean", "fresh_sd"), OPTIONAL)
        candidates = read_table(folder / "candidates.csv", {"trial": OPTIONAL, "anchor": TEXT, "winner": TEXT, **means})
    return Search(
        summary, *(table.assign(anchor=table["anchor"].astype(object).fillna("")) for table in (trials, candidates))
    )
