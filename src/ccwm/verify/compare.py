"""Two records side by side: bit for bit where one machine made both, within tolerances elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple

from ccwm.verify.record import Columns, Record, StageRecord, Value
from ccwm.verify.tolerances import SHORT, tolerance

SHOWN = 3
"""Differing values that are shown for one file."""


class Verdict(StrEnum):
    """What a comparison came to."""

    EQUAL = "equal"
    WITHIN = "within tolerance"
    SKIPPED = "not compared"
    DIFFERS = "differs"
    MISSING = "missing"
    NEW = "unexpected"


class Row(NamedTuple):
    """One output of one stage."""

    stage: str
    what: str
    verdict: Verdict
    detail: str = ""

    @property
    def surprise(self) -> bool:
        """Whether this should not have been so."""
        return self.verdict in (Verdict.DIFFERS, Verdict.MISSING, Verdict.NEW)


def compare(committed: Record, found: Record) -> list[Row]:
    """Every stage and every output of either record."""
    rows: list[Row] = []
    for name in {**committed.stages, **found.stages}:
        before, after = committed.stages.get(name), found.stages.get(name)
        if before is None:
            rows.append(Row(name, "all", Verdict.NEW, "no such stage was committed"))
        elif after is None:
            rows.append(Row(name, "all", Verdict.MISSING, "it was committed, and did not run"))
        else:
            rows += compare_stage(name, before, after, updates=_updates(name, committed))
    return rows


def compare_stage(name: str, before: StageRecord, after: StageRecord, *, updates: float) -> Iterator[Row]:
    """One stage: numbers by value, everything else by hash."""
    same = bool(before.machine) and before.machine == after.machine
    for path in {**before.files, **after.files}:
        equal = before.files.get(path) == after.files.get(path)
        if path not in after.files:
            yield Row(name, path, Verdict.MISSING)
        elif path not in before.files:
            yield Row(name, path, Verdict.NEW)
        elif path in before.numbers and path in after.numbers:
            file = f"{name.partition('@')[0]}/{PurePosixPath(path).name}"
            verdict, detail = _numbers(file, before.numbers[path], after.numbers[path], same=same, updates=updates)
            if verdict == Verdict.EQUAL and same and not equal:
                verdict, detail = Verdict.DIFFERS, "the same values in other bytes"
            yield Row(name, path, verdict, detail)
        elif equal:
            yield Row(name, path, Verdict.EQUAL)
        elif same:
            yield Row(name, path, Verdict.DIFFERS, f"{before.files[path]} → {after.files[path]}")
        else:
            yield Row(name, path, Verdict.SKIPPED, "another machine")


def _numbers(file: str, old: Columns, new: Columns, *, same: bool, updates: float) -> tuple[Verdict, str]:
    """The verdict on one file of numbers, and what led to it."""
    if old == new:
        return Verdict.EQUAL, ""
    if old.keys() != new.keys():
        return Verdict.DIFFERS, f"other names: {', '.join(sorted(old.keys() ^ new.keys()))}"
    if any(len(old[key]) != len(new[key]) for key in old):
        rows = f"{len(next(iter(new.values())))} rows instead of {len(next(iter(old.values())))}"
        free = not same and updates > SHORT  # another agent's episodes may end at other times
        return Verdict.SKIPPED if free else Verdict.DIFFERS, rows
    wrong, moved = [], []
    differing = [(key, i) for key in old for i in range(len(old[key])) if old[key][i] != new[key][i]]
    for key, index in differing:
        was, now = old[key][index], new[key][index]
        # A row of a curve knows its own update.
        then = old["updates"][index] if file.endswith(".csv") and "updates" in old else updates
        allowed = tolerance(file, key, updates=then if isinstance(then, float) else updates)
        if same or not allowed.allows(was, now):
            where = f"{key}[{index}]" if len(old[key]) > 1 else key
            wrong.append(f"{where} {_shown(was)} → {_shown(now)}" + ("" if same else f" ({allowed.name})"))
        elif allowed.relative is not None and isinstance(was, float) and isinstance(now, float):
            moved.append(abs(now - was) / max(abs(was), 1e-12))
    if wrong:
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        return Verdict.DIFFERS, "; ".join(wrong[:SHOWN]) + more
    if moved:
        return Verdict.WITHIN, f"{max(moved):.1e} of itself at most"
    return Verdict.SKIPPED, f"{len(differing)} values of another agent"


def _shown(value: Value) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _updates(name: str, record: Record) -> float:
    """Updates behind the agent that a cell is about; the most of all for the report."""
    counts = {
        stage.partition("@")[2]: float(values["updates"][0] or 0)
        for stage, made in record.stages.items()
        for path, values in made.numbers.items()
        if stage.startswith("train@") and path.endswith("metrics.json")
    }
    return counts.get(name.partition("@")[2], max(counts.values(), default=0.0))
