"""Comparing records: what is a surprise, and how far another machine may go."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ccwm.errors import UserError
from ccwm.verify.compare import Verdict, compare
from ccwm.verify.record import (
    Record,
    StageRecord,
    edited_files,
    load_record,
    md5,
    read_checkout,
    read_numbers,
    save_record,
)
from ccwm.verify.tolerances import EARLY, EXACT, FREE, LATE, RULES, STEP, WORLD, Tolerance, tolerance

ROOT = Path(__file__).parents[2]
METRICS = "results/train/t/v/0/metrics.json"
HERE, ELSEWHERE = {"processor": "here"}, {"processor": "elsewhere"}


def record(machine: dict[str, str] = HERE, *, updates: float = 20, **values: float) -> Record:
    numbers = {METRICS: {"updates": [updates], **{name: [value] for name, value in values.items()}}}
    files = {METRICS: json.dumps(numbers), "models/t/v/0": "weights"}
    return Record(stages={"train@t-v-0": StageRecord(run="r", machine=machine, files=files, numbers=numbers)})


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


def test_a_committed_file_that_was_edited_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results" / "metrics.json"
    path.parent.mkdir()
    path.write_text('{"a": 1}')
    lock = {"schema": "2.0", "stages": {"train@x": {"outs": [{"path": "results/metrics.json", "md5": md5(path)}]}}}
    (tmp_path / "dvc.lock").write_text(json.dumps(lock))
    assert edited_files(tmp_path) == {}
    path.write_text('{"a": 2}')
    assert edited_files(tmp_path) == {"train@x": ["results/metrics.json"]}


@pytest.mark.parametrize(
    ("stage", "file", "key", "early", "late"),
    [
        ("train", "metrics.json", "updates", EXACT, EXACT),
        ("train", "metrics.json", "return_final", EARLY, LATE),
        ("train", "metrics.json", "episodes", EARLY, LATE),
        ("evaluate", "metrics.json", "episodes", EXACT, EXACT),
        ("train", "losses.csv", "model/image", EARLY, FREE),
        ("collect", "returns.csv", "return", WORLD, WORLD),
        ("collect", "returns.csv", "seed", EXACT, EXACT),
        ("evaluate", "metrics.json", "random_mean", WORLD, WORLD),
        ("evaluate", "metrics.json", "return_sd", EARLY, FREE),
        ("evaluate", "metrics.json", "best_possible", EXACT, EXACT),
        ("rollout-viz", "metrics.json", "useful_steps_median", STEP, FREE),
        ("rollout-viz", "metrics.json", "baseline_error_mean", WORLD, WORLD),
        ("rollout-viz", "errors.csv", "error", EARLY, FREE),
        ("transfer", "metrics.json", "rows.R+M.n", EXACT, EXACT),
        ("transfer", "metrics.json", "rows.R+M.sd", EARLY, FREE),
        ("transfer", "metrics.json", "unchanged.mean", EARLY, LATE),
    ],
)
def test_every_metric_has_a_tolerance(stage: str, file: str, key: str, early: Tolerance, late: Tolerance) -> None:
    assert tolerance(stage, file, key, updates=100) == early
    assert tolerance(stage, file, key, updates=101) == late


def test_the_tolerances_are_written_down_with_their_reasons() -> None:
    page = " ".join((ROOT / "docs" / "verify.md").read_text().split())
    for kind in {each for _, *both in RULES for each in both}:
        number = "—" if kind.relative is None else f"{kind.relative:g}"
        assert f"| `{kind.name}` | {number} | {kind.absolute:g} | {kind.reason} |" in page


def test_every_committed_metric_has_a_rule() -> None:
    """No number of the committed results falls through the rules."""
    stages = read_checkout(ROOT).stages
    keys = [
        (name, path, key) for name, stage in stages.items() for path in stage.numbers for key in stage.numbers[path]
    ]
    assert keys
    for name, path, key in keys:
        assert tolerance(name.partition("@")[0], Path(path).name, key, updates=1000)


def test_numbers_of_json_and_csv(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"a": 1, "rows": {"R+M": {"mean": 0.5, "sd": null}}}')
    assert read_numbers(tmp_path / "metrics.json") == {"a": [1.0], "rows.R+M.mean": [0.5], "rows.R+M.sd": [None]}
    (tmp_path / "x.csv").write_text("part,return\ntrain,0.25\nheldout,\n")
    assert read_numbers(tmp_path / "x.csv") == {"part": ["train", "heldout"], "return": [0.25, ""]}


def test_a_record_is_read_back_and_a_bad_one_refused_with_the_cure(tmp_path: Path) -> None:
    save_record(tmp_path / "r.json", record(return_final=1 / 3))
    assert load_record(tmp_path / "r.json", cure="record it") == record(return_final=1 / 3)
    with pytest.raises(UserError, match=r"none\.json is missing: record it, and commit it"):
        load_record(tmp_path / "none.json", cure="record it")
    (tmp_path / "r.json").write_text('{"stages": {"train": {}}}')
    with pytest.raises(UserError, match=r"r\.json is no record of this version .*: record it"):
        load_record(tmp_path / "r.json", cure="record it")


def test_hashes_are_dvcs() -> None:
    lock = (ROOT / "dvc.lock").read_text()
    path = re.findall(r"path: (results/collect/\S+metrics\.json)", lock)[0]
    assert f"md5: {md5(ROOT / path)}" in lock
