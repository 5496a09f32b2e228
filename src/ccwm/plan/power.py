"""How many seeds a claim needs, from the spread of the seeds that have run."""

from __future__ import annotations

from collections.abc import Sequence

from ccwm.report.claims import Paper
from ccwm.report.ledger import load
from ccwm.report.sources import Source
from ccwm.report.statistics import pairs_needed, smallest_difference
from ccwm.report.table import Row

MATTERS = 0.1
"""The share of the other's mean that counts as a difference, for claims whose rule has no margin."""


def seeds_needed(sources: Sequence[Source], paper: Paper) -> list[Row]:
    """A row for each claim, tier and task with two seeds or more: 80% power, two-sided 5%, paired t."""
    rows = []
    for line in load(sources, paper):
        for tier, answer in line.answers.items():
            for of in answer.ours:
                matters = (line.claim.rule.margin or MATTERS) * abs(of["other"] or of["of"])
                if of["sd"] is not None and matters > 0:
                    row = {"claim": line.claim.id, "tier": tier, "task": of["task"], "study": answer.study}
                    row |= {"sd": of["sd"], "seeds": of["seeds"], "found": smallest_difference(of["sd"], of["seeds"])}
                    rows.append(row | {"matters": matters, "needed": pairs_needed(of["sd"], matters)})
    return rows
