"""Comparing records: what is a surprise, and how far another machine may go."""

from __future__ import annotations

import json

import pytest

from ccwm.verify.compare import Verdict, compare
from ccwm.verify.record import Record, StageRecord

METRICS = "results/train/t/v/0/metrics.json"
HERE, ELSEWHERE = {"processor": "here"}, {"processor": "elsewhere"}


def record(machine: dict[str, str] = HERE, *, updates: float = 20, **values: float) -> Record:
    numbers = {METRICS: {"updates": [updates], **{name: [value] for name, value in values.items()}}}
    files = {METRICS: json.dumps(numbers), "models/t/v/0": "weights"}
    return Record(stages={"train@t-v-0": StageRecord(machine=machine, files=files, numbers=numbers)})


def verdict(committed: Record, found: Record, what: str = METRICS) -> Verdict:
    (row,) = [row for row in compare(committed, found) if row.what == what]
    return row.verdict


@pytest.mark.parametrize(
    ("machine", "updates", "was", "now", "expected"),
    [
        (HERE, 20, 10.0, 10.0, Verdict.EQUAL),
        (HERE, 20, 10.0, 10.0000001, Verdict.DIFFERS),  # one machine, so one bit is too many
        (ELSEWHERE, 20, 10.0, 10.0099, Verdict.WITHIN),  # 1e-3 · 10 = 0.01
        (ELSEWHERE, 20, 10.0, 10.0101, Verdict.DIFFERS),
        (ELSEWHERE, 2000, 10.0, 14.9, Verdict.WITHIN),  # 0.5 · 10 + 0.05 = 5.05
        (ELSEWHERE, 2000, 10.0, 4.9, Verdict.DIFFERS),
        ({}, 20, 10.0, 10.0099, Verdict.WITHIN),  # nobody knows the machine
    ],
)
def test_a_number(machine: dict[str, str], updates: float, was: float, now: float, expected: Verdict) -> None:
    committed, found = record(machine, updates=updates, return_final=was), record(updates=updates, return_final=now)
    assert verdict(committed, found) == expected


def test_a_count_is_the_same_everywhere() -> None:
    committed, found = record(ELSEWHERE, updates=20), record(updates=21)
    assert verdict(committed, found) == Verdict.DIFFERS


def test_bytes_count_on_one_machine_and_are_not_promised_on_another() -> None:
    found = record()
    found.stages["train@t-v-0"].files["models/t/v/0"] = "other weights"
    assert verdict(record(), found, "models/t/v/0") == Verdict.DIFFERS
    assert verdict(record(ELSEWHERE), found, "models/t/v/0") == Verdict.SKIPPED


def test_what_is_there_on_one_side_only_is_a_surprise() -> None:
    more = record(return_final=1.0)
    assert verdict(record(), more) == Verdict.DIFFERS  # a key that nobody committed
    more.stages["train@t-v-0"].files["extra"] = "x"
    assert verdict(record(return_final=1.0), more, "extra") == Verdict.NEW
    assert verdict(more, record(return_final=1.0), "extra") == Verdict.MISSING
    (row,) = compare(record(), Record(stages={}))
    assert row.surprise


def test_the_same_values_in_other_bytes_are_a_surprise_on_one_machine() -> None:
    committed = record(return_final=1.0)
    committed.stages["train@t-v-0"].files[METRICS] = "another hash"
    assert verdict(committed, record(return_final=1.0)) == Verdict.DIFFERS


@pytest.mark.parametrize(("updates", "expected"), [(20, Verdict.DIFFERS), (2000, Verdict.SKIPPED)])
def test_rows_are_as_many_until_it_is_another_agent(updates: float, expected: Verdict) -> None:
    committed, found = record(ELSEWHERE, updates=updates), record(updates=updates)
    for each, returns in ((committed, [1.0, 2.0]), (found, [1.0])):
        each.stages["train@t-v-0"].numbers["x.csv"] = {"return": list(returns)}
        each.stages["train@t-v-0"].files["x.csv"] = str(returns)
    assert verdict(committed, found, "x.csv") == expected
