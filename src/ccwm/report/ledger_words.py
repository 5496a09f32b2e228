"""The ledger in words: for the page, for report.md and as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ccwm.report import words
from ccwm.report.claims import Claim, Scale
from ccwm.report.ledger import Compared, Entry, Verdict
from ccwm.report.tables import Entry as Field
from ccwm.report.tables import sources

RULES = (
    ("greater", "the interval of the difference is above 0 (disagrees: below 0)"),
    ("comparable", "it lies within ± a margin of the other’s mean (disagrees: outside)"),
    ("no worse", "it lies above − a margin (disagrees: below)"),
    ("at least, below", "the interval of the value lies on that side of the paper’s number, less a margin"),
    ("tally", "enough tasks are ahead and few enough behind; a task counts where its interval leaves out 0"),
)
"""When a kind of rule agrees; in between it is undecided."""


class Line(NamedTuple):
    """One claim as it is read."""

    id: str
    says: str
    where: str
    printed: str
    tasks: str
    ours: list[str]
    scale: str
    verdict: Verdict
    reason: str
    runs: dict[str, Field]
    """Links to the runs of each variant."""


def lines(entries: Sequence[Entry]) -> list[Line]:
    """Every claim in words; what has run comes first."""
    ordered = sorted(entries, key=lambda entry: entry.verdict is Verdict.NOT_RUN)
    return [
        Line(
            id=entry.claim.id,
            says=entry.claim.says,
            where=entry.claim.where,
            printed=entry.claim.printed,
            tasks=", ".join(entry.tasks),
            ours=[ours_words(entry.claim, of, named=len(entry.tasks) > 1) for of in entry.ours],
            scale=_scale_words(entry),
            verdict=entry.verdict,
            reason=entry.reason,
            runs=_runs(entry),
        )
        for entry in ordered
    ]


def ours_words(claim: Claim, of: Compared, *, named: bool) -> str:
    """`ccwm − dreamer +12.30 (95% −4.10 to 28.70; 181.0 and 168.7)`."""
    found = of.found
    around = (
        f"{claim.confidence:.0%} {words.interval(found.low, found.high)}" if found.low is not None else "no interval"
    )
    task = f"{of.task}: " if named else ""
    mean = words.number(of.means[claim.of])
    if claim.than is not None:
        both = f"{mean} and {words.number(of.means[claim.than])}"
        return f"{task}{claim.of} − {claim.than} {words.signed(found.mean)} ({around}; {both})"
    if claim.quoted is not None:
        both = f"{mean} and {words.number(of.other)}"
        return f"{task}{claim.of} − {claim.quoted} {words.signed(found.mean)} ({around}; {both})"
    return f"{task}{claim.of} {mean} ({around})"


def _runs(entry: Entry) -> dict[str, Field]:
    """The runs behind a line on one task; a tally has too many, and claims.csv names them."""
    if len(entry.tasks) > 1:
        return {}
    variants = dict.fromkeys(str(cell.variant) for cell in entry.cells)
    return {variant: sources([cell for cell in entry.cells if cell.variant == variant]) for variant in variants}


def _scale_words(entry: Entry) -> str:
    if not entry.ours:
        return words.NONE
    return f"{words.count(entry.seeds, 'seed')}, {entry.env_steps:,} steps (the paper {entry.claim.env_steps:,})"


def summary(entries: Sequence[Entry]) -> str:
    """How many claims each verdict has."""
    counts = Counter(entry.verdict for entry in entries)
    total = words.count(len(entries), "claim")
    if counts[Verdict.NOT_RUN] == len(entries):
        return f"Of the paper’s {total} none has been run: this study has not their tasks and variants."
    plural = {Verdict.AGREES: "agree", Verdict.DISAGREES: "disagree"}
    said = [
        f"{n} {plural.get(verdict, verdict) if n > 1 else verdict}" for verdict in Verdict if (n := counts[verdict])
    ]
    return f"Of the paper’s {total}: {', '.join(said)}."


def scale_rule(scale: Scale) -> str:
    """From which scale on a verdict is given."""
    return (
        f"Fewer than {scale.seeds} seeds, or less than {scale.budget:.0%} of the paper’s environment steps, is "
        "undecided, whatever the numbers. Intervals are t intervals over seeds, differences are paired by seed. "
        "A claim agrees where"
    )


def write_csv(path: Path, entries: Sequence[Entry]) -> None:
    """Every number of the ledger unrounded, a row for each claim and task."""
    records = [
        {
            "id": entry.claim.id,
            "task": of.task if of is not None else " ".join(entry.tasks),
            "says": entry.claim.says,
            "where": entry.claim.where,
            "printed": entry.claim.printed,
            "verdict": entry.verdict.value,
            "reason": entry.reason,
            "of": of and of.means[entry.claim.of],
            "other": of and of.other,
            "estimate": of and of.found.mean,
            "low": of and of.found.low,
            "high": of and of.found.high,
            "confidence": entry.claim.confidence,
            "seeds": of and of.found.n,
            "env_steps": of and of.env_steps,
            "cells": " ".join(cell.name for cell in of.cells) if of is not None else "",
        }
        for entry in entries
        for of in (entry.ours or (None,))
    ]
    pd.DataFrame(records).to_csv(path, index=False, lineterminator="\n")
