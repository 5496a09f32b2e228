"""The rules by which an interval of ours agrees with a claim or disagrees; docs/claims.md has each in words."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from ccwm.report.claims import Rule


class Verdict(StrEnum):
    """What our results say about a claim."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    UNDECIDED = "undecided at this scale"
    NOT_RUN = "not run"
    NOT_ASKED = "cannot be asked"


def weigh(rule: Rule, low: float, high: float, *, other: float) -> tuple[Verdict, str]:
    """Hold an interval against a rule: that of a difference, or that of a value for `at_least` and `below`.

    ``other`` is what a margin is a share of.
    """
    margin = rule.margin * abs(other)
    if rule.kind == "greater":
        return _side(low > 0, high < 0, "is above 0", "is below 0", "holds 0")
    if rule.kind == "comparable":
        within = f"±{rule.margin:.0%} of the other"
        inside, outside = -margin <= low and high <= margin, low > margin or high < -margin
        neither = f"is neither within {within} nor outside"
        return _side(inside, outside, f"is within {within}", f"is outside {within}", neither)
    if rule.kind == "no_worse":
        least = f"−{rule.margin:.0%} of the other"
        return _side(low >= -margin, high < -margin, f"is above {least}", f"is below {least}", f"holds {least}")
    value = float(rule.value or 0)
    bound = value - rule.margin * abs(value)
    above, below, holds = (f"{how} {bound:,.6g}" for how in ("is at least", "is below", "holds"))
    if rule.kind == "at_least":
        return _side(low >= bound, high < bound, above, below, holds)
    return _side(high < bound, low >= bound, below, above, holds)


def tally(rule: Rule, intervals: Sequence[tuple[float, float]]) -> tuple[Verdict, str]:
    """Count the tasks whose interval is above, around and below 0, and compare with the least and the most allowed."""
    ahead, behind = sum(low > 0 for low, _ in intervals), sum(high < 0 for _, high in intervals)
    level = len(intervals) - ahead - behind
    least, most = rule.ahead or 0, rule.behind or 0
    agrees, disagrees = ahead >= least and behind <= most, behind > most or ahead + level < least
    verdict, _ = _side(agrees, disagrees, "", "", "")
    return verdict, f"ahead on {ahead}, level on {level}, behind on {behind} of {len(intervals)}"


def _side(agrees: bool, disagrees: bool, yes: str, no: str, neither: str) -> tuple[Verdict, str]:
    if agrees:
        return Verdict.AGREES, f"the interval {yes}"
    return (Verdict.DISAGREES, f"the interval {no}") if disagrees else (Verdict.UNDECIDED, f"the interval {neither}")
