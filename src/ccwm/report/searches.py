"""The files of one search for settings, as `ccwm tune` has published them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Search:
    """The files of one study."""

    folder: Path
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
    def cut(self) -> pd.DataFrame:
        """The trials that were pruned after they had reported something."""
        return self.trials[(self.trials["state"] == "pruned") & self.trials["value"].notna()]

    @property
    def winner(self) -> int | None:
        """The number of the trial that won."""
        found = self.summary["winner"]
        return None if found is None else int(found["trial"])

    @property
    def run_id(self) -> str | None:
        """The MLflow run of the search, where its record is there."""
        record = self.folder / "run.json"
        return str(json.loads(record.read_text("utf-8"))["run_id"]) if record.is_file() else None

    def is_log(self, key: str) -> bool:
        """Whether the setting was searched over orders of magnitude."""
        return bool(self.summary["space"][key].get("log"))


def read_search(folder: Path) -> Search:
    """Read what a search has published."""
    summary = json.loads((folder / "study.json").read_text("utf-8"))
    return Search(folder, summary, _read(folder / "trials.csv"), _read(folder / "candidates.csv"))


def _read(path: Path) -> pd.DataFrame:
    """A table whose anchors are text, also where none is set; one without candidates has no columns to read."""
    if path.stat().st_size <= 1:
        return pd.DataFrame(columns=["trial", "anchor", "winner"])
    table = pd.read_csv(path, dtype={"anchor": "string"})
    return table.assign(anchor=table["anchor"].fillna(""))
