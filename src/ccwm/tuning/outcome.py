"""What a study has come to: its trials as rows, the best of them, and the winner once fresh seeds have spoken."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from ccwm.tuning.space import Point
from ccwm.tuning.study import ANCHOR, CANDIDATE
from ccwm.tuning.workers import root_number, standing

POINT, SEEDS = "point", "seeds"
"""Attributes of a trial: its point by key, and what each of its seeds came to."""


@dataclass(frozen=True)
class Row:
    """One trial that counts."""

    number: int
    root: int
    state: str
    anchor: str
    point: Point
    value: float | None
    seeds: dict[int, float]
    seconds: float | None
    commit: str

    @property
    def sd(self) -> float | None:
        """Standard deviation over seeds."""
        return statistics.stdev(self.seeds.values()) if len(self.seeds) > 1 else None


@dataclass(frozen=True)
class Candidate:
    """One of the best trials (or the default settings), on the seeds of the search and on fresh ones."""

    searched: Row
    fresh: Row | None


@dataclass(frozen=True)
class Outcome:
    """A study at one moment."""

    rows: list[Row]
    candidates: list[Candidate]

    @property
    def best(self) -> Row | None:
        """The best complete trial on the seeds of the search."""
        return max(_complete(self.rows), key=lambda row: (row.value, -row.number), default=None)

    @property
    def winner(self) -> Candidate | None:
        """The best candidate on fresh seeds; None until each has been trained on them or has failed there."""
        if not self.candidates or any(candidate.fresh is None for candidate in self.candidates):
            return None
        whole = [each for each in self.candidates if each.fresh is not None and each.fresh.value is not None]
        return max(whole, key=lambda each: (each.fresh.value, -each.searched.number), default=None)  # type: ignore[union-attr]


def read_outcome(study: Study, fresh: Study | None, *, top: int) -> Outcome:
    """The study's rows and candidates as they are now."""
    rows = [_row(trial) for trial in standing(study.get_trials(deepcopy=False))]
    checked = fresh_rows(fresh) if fresh is not None else {}
    finished = {root: row for root, row in checked.items() if row.state != "running"}
    return Outcome(rows, [Candidate(row, finished.get(row.root)) for row in choose(rows, top)])


def choose(rows: list[Row], top: int) -> list[Row]:
    """The ``top`` best complete trials with different points, and the one with the default settings."""
    ranked = sorted(_complete(rows), key=lambda row: (-(row.value or 0.0), row.number))
    chosen: list[Row] = []
    for row in ranked:
        if len(chosen) < top and row.point not in [other.point for other in chosen]:
            chosen.append(row)
    default = next((row for row in ranked if "default" in row.anchor), None)
    if default is not None and default.point not in [row.point for row in chosen]:
        chosen.append(default)
    return chosen


def fresh_rows(fresh: Study) -> dict[int, Row]:
    """The trials on fresh seeds, by the number of the trial that they check; the first of several counts."""
    rows: dict[int, Row] = {}
    for trial in standing(fresh.get_trials(deepcopy=False)):
        rows.setdefault(trial.user_attrs[CANDIDATE], _row(trial))
    return rows


def _complete(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.state == "complete" and row.value is not None]


def _row(trial: FrozenTrial) -> Row:
    states = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
    attributes: dict[str, Any] = trial.user_attrs
    return Row(
        number=trial.number,
        root=root_number(trial),
        state=states.get(trial.state, "running"),
        anchor=attributes.get(ANCHOR, ""),
        point=attributes.get(POINT, {}),
        value=trial.value if trial.state.is_finished() else _last(trial),
        seeds={int(seed): result["value"] for seed, result in attributes.get(SEEDS, {}).items()},
        seconds=trial.duration.total_seconds() if trial.duration else None,
        commit=attributes.get("commit", ""),
    )


def _last(trial: FrozenTrial) -> float | None:
    return trial.intermediate_values[trial.last_step] if trial.last_step is not None else None
