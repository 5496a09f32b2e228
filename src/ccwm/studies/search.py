"""A search for settings as files: trials, candidates and a summary, as `ccwm tune` writes and the report reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ccwm.files import write_csv, write_json
from ccwm.readers import OPTIONAL, TEXT, BadResult, read_object, read_table

SUMMARY = (
    *("study", "task", "variant", "measure", "measure_title", "sampler", "pruner", "seeds", "fresh_seeds"),
    *("space", "trials", "commits", "importance", "winner"),
)
"""The keys of ``study.json``."""


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


def read_search(folder: Path) -> Search:
    """Read what a search has published; one that has no candidates yet has an empty table of them."""
    summary = read_object(folder / "study.json")
    if absent := [key for key in SUMMARY if key not in summary]:
        raise BadResult(f"{folder / 'study.json'} lacks the key {absent[0]!r}")
    trials = read_table(folder / "trials.csv", {"trial": OPTIONAL, "state": TEXT, "value": OPTIONAL, "anchor": TEXT})
    candidates = pd.DataFrame(columns=["trial", "anchor", "winner"])
    if (folder / "candidates.csv").stat().st_size > 1:
        means = dict.fromkeys(("search_mean", "search_sd", "fresh_mean", "fresh_sd"), OPTIONAL)
        candidates = read_table(folder / "candidates.csv", {"trial": OPTIONAL, "anchor": TEXT, "winner": TEXT, **means})
    return Search(
        summary, *(table.assign(anchor=table["anchor"].astype(object).fillna("")) for table in (trials, candidates))
    )
