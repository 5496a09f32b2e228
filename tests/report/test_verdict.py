"""Verdicts by hand: every kind of rule."""

from __future__ import annotations

import pytest

from ccwm.report.claims import Rule
from ccwm.report.verdict import Verdict, tally, weigh

AGREES, DISAGREES, UNDECIDED, *_ = Verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 2.0, AGREES), (0.0, 2.0, UNDECIDED), (-1.0, 1.0, UNDECIDED), (-2.0, -0.1, DISAGREES)],
)
def test_greater(low: float, high: float, verdict: Verdict) -> None:
    assert weigh(Rule(kind="greater"), low, high, other=50.0)[0] is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [  # a tenth of the other's −200 is 20
        (-20.0, 20.0, AGREES),
        (-5.0, 21.0, UNDECIDED),
        (-21.0, 5.0, UNDECIDED),
        (20.5, 40.0, DISAGREES),
        (-40.0, -20.5, DISAGREES),
    ],
)
def test_comparable(low: float, high: float, verdict: Verdict) -> None:
    assert weigh(Rule(kind="comparable", margin=0.1), low, high, other=-200.0)[0] is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-20.0, 500.0, AGREES), (30.0, 90.0, AGREES), (-21.0, 90.0, UNDECIDED), (-90.0, -20.5, DISAGREES)],
)
def test_no_worse(low: float, high: float, verdict: Verdict) -> None:
    assert weigh(Rule(kind="no_worse", margin=0.1), low, high, other=200.0)[0] is verdict


@pytest.mark.parametrize(
    ("low", "high", "at_least", "below"),
    [  # a tenth less than 900 is 810
        (810.0, 950.0, AGREES, DISAGREES),
        (800.0, 820.0, UNDECIDED, UNDECIDED),
        (700.0, 809.0, DISAGREES, AGREES),
    ],
)
def test_a_value_against_the_papers(low: float, high: float, at_least: Verdict, below: Verdict) -> None:
    assert weigh(Rule(kind="at_least", value=900.0, margin=0.1), low, high, other=900.0)[0] is at_least
    assert weigh(Rule(kind="below", value=900.0, margin=0.1), low, high, other=900.0)[0] is below


@pytest.mark.parametrize(
    ("intervals", "verdict", "reason"),
    [
        ("+++~-", AGREES, "ahead on 3, level on 1, behind on 1 of 5"),
        ("++~~-", UNDECIDED, "ahead on 2, level on 2, behind on 1 of 5"),  # one of the level ones may be ahead
        ("+++--", DISAGREES, "ahead on 3, level on 0, behind on 2 of 5"),
        ("+~---", DISAGREES, "ahead on 1, level on 1, behind on 3 of 5"),
    ],
)
def test_tally(intervals: str, verdict: Verdict, reason: str) -> None:
    ends = {"+": (1.0, 2.0), "~": (-1.0, 1.0), "-": (-2.0, -1.0)}
    assert tally(Rule(kind="tally", ahead=3, behind=1), [ends[sign] for sign in intervals]) == (verdict, reason)
