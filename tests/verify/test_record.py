"""What a checkout says: hashes, numbers, and the machine behind the very files that are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ccwm.errors import UserError
from ccwm.files import md5
from ccwm.verify.record import (
    Record,
    StageRecord,
    edited_files,
    load_record,
    read_checkout,
    read_numbers,
    save_record,
    with_machines,
)

ROOT = Path(__file__).parents[2]
HERE = {"processor": "here"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A stage with a result, and a report, each with the run.json of the execution that made it."""
    outs = {"train@x": "results/train/x/metrics.json", "report": "report/index.html"}
    stages = {}
    for name, out in outs.items():
        path = tmp_path / out
        path.parent.mkdir(parents=True)
        path.write_text('{"a": 1}')
        record = tmp_path / ("results/report/run.json" if name == "report" else path.with_name("run.json"))
        record.parent.mkdir(exist_ok=True)
        record.write_text(json.dumps({"machine": HERE, "files": {out: md5(path)}}))
        stages[name] = {"outs": [{"path": out if name != "report" else "report", "md5": md5(path)}]}
    (tmp_path / "dvc.lock").write_text(json.dumps({"schema": "2.0", "stages": stages}))
    return tmp_path


def test_a_run_record_names_the_machine_of_the_files_that_it_made(checkout: Path) -> None:
    stages = read_checkout(checkout).stages
    assert {name: stage.machine for name, stage in stages.items()} == {"train@x": HERE, "report": HERE}
    assert stages["train@x"].numbers == {"results/train/x/metrics.json": {"a": [1.0]}}
    (checkout / "results/train/x/metrics.json").write_text('{"a": 2}')  # as `git pull` would
    assert read_checkout(checkout).stages["train@x"].machine == {}


def test_a_fresh_clone_knows_the_machine_from_the_committed_record(checkout: Path) -> None:
    known = read_checkout(checkout)
    for path in checkout.rglob("run.json"):
        path.unlink()
    found = read_checkout(checkout)
    assert found.stages["train@x"].machine == {}
    assert with_machines(found, known) == known
    other = known.stages["train@x"].model_copy(update={"files": {"results/train/x/metrics.json": "another"}})
    assert with_machines(found, Record(stages={"train@x": other})) == found


def test_a_committed_file_that_was_edited_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results" / "metrics.json"
    path.parent.mkdir()
    path.write_text('{"a": 1}')
    lock = {"schema": "2.0", "stages": {"train@x": {"outs": [{"path": "results/metrics.json", "md5": md5(path)}]}}}
    (tmp_path / "dvc.lock").write_text(json.dumps(lock))
    assert edited_files(tmp_path) == {}
    path.write_text('{"a": 2}')
    assert edited_files(tmp_path) == {"train@x": ["results/metrics.json"]}


def test_numbers_of_json_and_csv(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"a": 1, "rows": {"R+M": {"mean": 0.5, "sd": null}}}')
    assert read_numbers(tmp_path / "metrics.json") == {"a": [1.0], "rows.R+M.mean": [0.5], "rows.R+M.sd": [None]}
    (tmp_path / "x.csv").write_text("part,return\ntrain,0.25\nheldout,\n")
    assert read_numbers(tmp_path / "x.csv") == {"part": ["train", "heldout"], "return": [0.25, ""]}


def test_a_record_is_read_back_and_a_bad_one_has_a_hint(tmp_path: Path) -> None:
    record = Record(stages={"train@x": StageRecord(machine={}, files={"a": "b"}, numbers={"a": {"loss": [1 / 3]}})})
    save_record(tmp_path / "r.json", record)
    assert load_record(tmp_path / "r.json", hint="record it") == record
    for text in (None, '{"stages": {"train": {}}}'):
        path = tmp_path / f"{'old' if text else 'none'}.json"
        if text:
            path.write_text(text)
        with pytest.raises(UserError, match=path.name) as caught:
            load_record(path, hint="record it")
        assert caught.value.hint == "record it"


def test_hashes_are_dvcs() -> None:
    lock = (ROOT / "dvc.lock").read_text()
    path = re.findall(r"path: (results/collect/\S+metrics\.json)", lock)[0]
    assert f"md5: {md5(ROOT / path)}" in lock
