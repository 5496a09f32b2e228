"""Two records side by side: bit for bit where one machine made both, within tolerances elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple

from ccwm.verify.record import Columns, Record, StageRecord, Value
from ccwm.verify.tolerances import SHORT, Tolerance, tolerance

SHOWN = 3
"""Differing values that are told of one file."""


class Verdict(StrEnum):
    """What a comparison came to."""

    EQUAL = "equal"
    WITHIN = "within tolerance"
    SKIPPED = "not compared"
    DIFFERS = "differs"
    MISSING = "missing"
    NEW = "unexpected"


SURPRISES = (Verdict.DIFFERS, Verdict.MISSING, Verdict.NEW)


class Row(NamedTuple):
    """One output of one stage."""

    stage: str
    what: str
    verdict: Verdict
    detail: str = ""

    @property
    def surprise(self) -> bool:
        """Whether this should not have been so."""
        return self.verdict in SURPRISES


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
    kind = name.partition("@")[0]
    for path in {**before.files, **after.files}:
        if path not in after.files:
            yield Row(name, path, Verdict.MISSING)
        elif path not in before.files:
            yield Row(name, path, Verdict.NEW)
        elif path in before.numbers and path in after.numbers:
            yield _numbers(name, kind, path, before, after, same=same, updates=updates)
        elif before.files[path] == after.files[path]:
            yield Row(name, path, Verdict.EQUAL)
        else:
            detail = f"{before.files[path]} → {after.files[path]}"
            yield Row(name, path, Verdict.DIFFERS if same else Verdict.SKIPPED, detail if same else "another machine")


class Difference(NamedTuple):
    """A value that is not the committed one."""

    where: str
    was: Value
    now: Value
    allowed: Tolerance

    @property
    def share(self) -> float:
        """How far it moved, as a share of itself."""
        if isinstance(self.was, float) and isinstance(self.now, float):
            return abs(self.now - self.was) / max(abs(self.was), 1e-12)
        return 1.0


def _numbers(
    name: str, kind: str, path: str, before: StageRecord, after: StageRecord, *, same: bool, updates: float
) -> Row:
    old, new = before.numbers[path], after.numbers[path]
    if old == new:
        if before.files[path] == after.files[path] or not same:
            return Row(name, path, Verdict.EQUAL)
        return Row(name, path, Verdict.DIFFERS, "the same values in other bytes")
    if old.keys() != new.keys():
        return Row(name, path, Verdict.DIFFERS, f"other names: {', '.join(sorted(old.keys() ^ new.keys()))}")
    if any(len(old[key]) != len(new[key]) for key in old):
        rows = f"{len(next(iter(new.values())))} rows instead of {len(next(iter(old.values())))}"
        free = not same and updates > SHORT  # another agent's episodes may end at other times
        return Row(name, path, Verdict.SKIPPED if free else Verdict.DIFFERS, rows)
    found = [*_differences(kind, PurePosixPath(path).name, old, new, updates=updates)]
    wrong = [each for each in found if same or not each.allowed.allows(each.was, each.now)]
    if wrong:
        told = [f"{each.where} {_shown(each.was)} → {_shown(each.now)}" + ("" if same else f" ({each.allowed.name})")
                for each in wrong]  # fmt: skip
        more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
        return Row(name, path, Verdict.DIFFERS, "; ".join(told[:SHOWN]) + more)
    measured = [each.share for each in found if each.allowed.relative is not None]
    if not measured:
        return Row(name, path, Verdict.SKIPPED, f"{len(found)} values of another agent")
    return Row(name, path, Verdict.WITHIN, f"{max(measured):.1e} of itself at most")


def _differences(kind: str, file: str, old: Columns, new: Columns, *, updates: float) -> Iterator[Difference]:
    """Values that differ, with what another machine may do to them; a row of a curve knows its own update."""
    at = old.get("updates", []) if file.endswith(".csv") else []
    for key in old:
        for index, (was, now) in enumerate(zip(old[key], new[key], strict=True)):
            if was != now:
                then = at[index] if at else updates
                allowed = tolerance(kind, file, key, updates=then if isinstance(then, float) else updates)
                yield Difference(f"{key}[{index}]" if len(old[key]) > 1 else key, was, now, allowed)


def _shown(value: Value) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _updates(name: str, record: Record) -> float:
    """Updates behind the agent that a cell is about; the most of all for the report."""
    counts = {
        stage.partition("@")[2]: values["updates"][0]
        for stage, made in record.stages.items()
        for path, values in made.numbers.items()
        if stage.startswith("train@") and path.endswith("metrics.json")
    }
    known = [count for count in counts.values() if isinstance(count, float)]
    own = counts.get(name.partition("@")[2])
    return own if isinstance(own, float) else max(known, default=0.0)
