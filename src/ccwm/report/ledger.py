"""The claims ledger: each claim of the paper, our numbers beside it, and a verdict by a stated rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ccwm.report.claims import Claim, Measure, Paper, Rule, Scale
from ccwm.report.learning import curve_area, curve_end
from ccwm.report.results import Cell, Results, finite
from ccwm.report.statistics import Estimate, estimate, paired_difference
from ccwm.report.summaries import best_possible


class Verdict(StrEnum):
    """What our results say about a claim."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    UNDECIDED = "undecided at this scale"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Compared:
    """Our numbers on one task: each variant's mean over seeds, and the estimate that the rule looks at."""

    task: str
    means: dict[str, float]
    found: Estimate
    other: float
    """What a margin is a share of: the mean of the other variant, or the number compared with."""
    env_steps: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    claim: Claim
    tasks: tuple[str, ...]
    ours: tuple[Compared, ...]
    verdict: Verdict
    reason: str

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that the numbers come from."""
        return tuple(cell for of in self.ours for cell in of.cells)

    @property
    def seeds(self) -> int:
        """The fewest seeds behind any of the numbers."""
        return min((of.found.n for of in self.ours), default=0)

    @property
    def env_steps(self) -> int:
        """The fewest environment steps that any of the agents was trained for."""
        return min((of.env_steps for of in self.ours), default=0)


def ledger(results: Results, paper: Paper) -> list[Entry]:
    """Every claim in the order of the file, one line for each of its tasks, a tally in one line."""
    return [
        _entry(results, paper, claim, tasks)
        for claim in paper.claims
        for tasks in ([claim.tasks] if claim.rule.kind == "tally" else [[task] for task in claim.tasks])
    ]


def _entry(results: Results, paper: Paper, claim: Claim, tasks: list[str]) -> Entry:
    found = {task: compare(results, paper, claim, task) for task in tasks}
    ours = tuple(of for of in found.values() if of is not None)
    if missing := [task for task, of in found.items() if of is None]:
        needs = f"needs {' and '.join(claim.variants)} on {', '.join(missing)}"
        return Entry(claim, tuple(tasks), ours, Verdict.NOT_RUN, f"{needs} (preset {claim.preset})")
    verdict, reason = judge(claim, ours, scale=paper.scale)
    return Entry(claim, tuple(tasks), ours, verdict, reason)


def compare(results: Results, paper: Paper, claim: Claim, task: str) -> Compared | None:
    """The claim's numbers on one task; None where the study or its results lack a variant, or the two share no seed."""
    if task not in results.tasks or not {*claim.variants} <= {*results.variants}:
        return None  # older results may lie there, but are none of this study's
    cells = {variant: results.cells("train", task=task, variant=variant) for variant in claim.variants}
    values = {
        variant: {cell.seed: value for cell in of if (value := _value(results, claim, cell)) is not None}
        for variant, of in cells.items()
    }
    if not all(values.values()):
        return None
    ours = values[claim.of]
    if claim.than is not None:
        theirs = values[claim.than]
        found = paired_difference(ours, theirs, confidence=claim.confidence)
        seeds = {*ours} & {*theirs}
    else:
        published = paper.quoted_on(task, best_possible(results, task))
        if claim.quoted is not None and claim.quoted not in published:
            return None  # ours are of other episodes
        fixed = claim.rule.value if claim.quoted is None else published[claim.quoted]
        level = 0.0 if claim.quoted is None else float(fixed or 0)
        found = estimate([ours[seed] - level for seed in sorted(ours)], confidence=claim.confidence)
        theirs, seeds = dict.fromkeys(ours, float(fixed or 0)), {*ours}
    if found is None:
        return None
    used = [cell for of in cells.values() for cell in of if cell.seed in seeds]
    return Compared(
        task,
        {variant: estimate([of[seed] for seed in sorted(seeds)]).mean for variant, of in values.items()},
        found,
        estimate([theirs[seed] for seed in sorted(seeds)]).mean,
        round(min(cell.number("env_steps") or 0 for cell in used)),
        tuple(_source(results, claim.measure, cell) for cell in used),
    )


def _value(results: Results, claim: Claim, trained: Cell) -> float | None:
    """The measure of one seed."""
    cell = _source(results, claim.measure, trained)
    if claim.measure.curve is not None:
        of = curve_area if claim.measure.curve == "area" else curve_end
        return of(cell, until=claim.env_steps)
    value = _number(cell, claim.measure, str(claim.measure.key))
    if claim.measure.minus is None or value is None:
        return value
    less = _number(cell, claim.measure, claim.measure.minus)
    return None if less is None else value - less


def _number(cell: Cell, measure: Measure, key: str) -> float | None:
    """One number of the cell's table or of its metrics; None where it is not there."""
    if measure.table is not None:
        frame = cell.table(measure.table, [key])
        rows = None if frame is None else frame[frame.iloc[:, 0] == measure.row]
        return None if rows is None or rows.empty else finite(float(rows[key].iloc[0]))
    value: Any = cell.metrics()
    for part in key.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return finite(value)


def _source(results: Results, measure: Measure, trained: Cell) -> Cell:
    """The cell whose files hold the measure of a trained agent."""
    return results.cell(measure.stage or "train", trained.task, trained.variant, trained.seed)


def judge(claim: Claim, ours: Sequence[Compared], *, scale: Scale) -> tuple[Verdict, str]:
    """The verdict on numbers that are all there, with its reason; below the stated scale it is always undecided."""
    seeds, steps = min(of.found.n for of in ours), min(of.env_steps for of in ours)
    short = []
    if seeds < scale.seeds:
        short.append(f"{seeds} of at least {scale.seeds} seeds")
    if steps < scale.budget * claim.env_steps:
        short.append(f"{steps:,} of at least {scale.budget * claim.env_steps:,.0f} environment steps")
    if short:
        return Verdict.UNDECIDED, " and ".join(short)
    if claim.rule.kind == "tally":
        return tally(claim.rule, [(of.found.low or 0.0, of.found.high or 0.0) for of in ours])
    (only,) = ours
    return weigh(claim.rule, only.found.low or 0.0, only.found.high or 0.0, other=only.other)


def weigh(rule: Rule, low: float, high: float, *, other: float) -> tuple[Verdict, str]:
    """Hold an interval against a rule: that of a difference, or that of a value for `at_least` and `below`.

    ``other`` is what a margin is a share of.
    """
    margin = rule.margin * abs(other)
    if rule.kind == "greater":
        return _side(low > 0, high < 0, "the interval is above 0", "the interval is below 0", "the interval holds 0")
    if rule.kind == "comparable":
        within = f"±{rule.margin:.0%} of the other"
        return _side(
            low >= -margin and high <= margin,
            low > margin or high < -margin,
            f"the interval is within {within}",
            f"the interval is outside {within}",
            f"the interval is neither within {within} nor outside",
        )
    if rule.kind == "no_worse":
        least = f"−{rule.margin:.0%} of the other"
        return _side(
            low >= -margin,
            high < -margin,
            f"the interval is above {least}",
            f"the interval is below {least}",
            f"the interval holds {least}",
        )
    value = float(rule.value or 0)
    bound = value - rule.margin * abs(value)
    above, below, holds = (f"the interval {how} {bound:,.6g}" for how in ("is at least", "is below", "holds"))
    if rule.kind == "at_least":
        return _side(low >= bound, high < bound, above, below, holds)
    return _side(high < bound, low >= bound, below, above, holds)


def tally(rule: Rule, intervals: Sequence[tuple[float, float]]) -> tuple[Verdict, str]:
    """Count the tasks whose interval is above, around and below 0, and compare with the least and the most allowed."""
    ahead, behind = sum(low > 0 for low, _ in intervals), sum(high < 0 for _, high in intervals)
    level = len(intervals) - ahead - behind
    least, most = rule.ahead or 0, rule.behind or 0
    count = f"ahead on {ahead}, level on {level}, behind on {behind}"
    return _side(
        ahead >= least and behind <= most, behind > most or ahead + level < least, *[f"{count} of {len(intervals)}"] * 3
    )


def _side(agrees: bool, disagrees: bool, yes: str, no: str, neither: str) -> tuple[Verdict, str]:
    if agrees:
        return Verdict.AGREES, yes
    return (Verdict.DISAGREES, no) if disagrees else (Verdict.UNDECIDED, neither)
