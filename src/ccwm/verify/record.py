"""What a run of the pipeline left, in a form that can be compared: hashes, numbers, and the machine that made them."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ccwm.errors import UserError
from ccwm.files import write_json
from ccwm.settings.parsing import read_yaml
from ccwm.settings.section import Section

FOLDER = Path("verify")
RESULTS = FOLDER / "results.json"
"""The machine behind each stage of the committed dvc.lock, and the hashes of the report's figures."""

RUN = "run.json"
NUMBERS = ("metrics.json", ".csv")
REPORT = ("figures/*", "tables/evaluation.csv", "tables/prediction.csv", "tables/transfer.csv")
"""Files of the report that are the same for the same results; the others name runs and costs."""

Value = float | str | None
Columns = dict[str, list[Value]]


class StageRecord(Section):
    """One entry of the matrix."""

    run: str
    """MD5 of its run.json, or of the report that holds one, which tells one execution from another."""
    machine: dict[str, str]
    """Empty where nobody knows."""
    files: dict[str, str]
    """Path → MD5 (DVC's, of directories too) of each output that code, settings and machine decide."""
    numbers: dict[str, Columns]
    """Path → the values of a metrics.json by dotted key, or of a CSV by column."""


class Record(Section):
    """All entries of the matrix, by DVC's names."""

    stages: dict[str, StageRecord]


class BadRecord(UserError, ValueError):
    """A record is missing or cannot be read."""


def load_record(path: Path, *, cure: str) -> Record:
    """Read a committed record."""
    if not path.is_file():
        raise BadRecord(f"{path.name} is missing: {cure}, and commit it")
    try:
        return Record.model_validate_json(path.read_text())
    except ValidationError as error:
        raise BadRecord(f"{path.name} is no record of this version ({error.errors()[0]['msg']}): {cure}") from None


def save_record(path: Path, record: Record) -> None:
    """Write a record, its stages in order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"stages": {name: stage.model_dump() for name, stage in sorted(record.stages.items())}})


def read_lock(root: Path) -> dict[str, Any]:
    """The stages of dvc.lock by name; none where there is no such file."""
    path = root / "dvc.lock"
    stages: dict[str, Any] = read_yaml(path)["stages"] if path.is_file() else {}
    return stages


def read_checkout(root: Path) -> Record:
    """What dvc.lock, the result files and, where they are there, the run records and the report say."""
    return Record(stages={name: _stage(root, entry["outs"]) for name, entry in read_lock(root).items()})


def edited_files(root: Path) -> dict[str, list[str]]:
    """By stage, the number files in git that are no longer those which dvc.lock names."""
    found = {
        name: [
            out["path"]
            for out in entry["outs"]
            if out["path"].endswith(NUMBERS) and (path := root / out["path"]).is_file() and md5(path) != out["md5"]
        ]
        for name, entry in read_lock(root).items()
    }
    return {name: paths for name, paths in found.items() if paths}


def _stage(root: Path, outs: list[dict[str, Any]]) -> StageRecord:
    run = ""
    machine: dict[str, str] = {}
    files: dict[str, str] = {}
    numbers: dict[str, Columns] = {}
    for out in outs:
        name = out["path"]
        path = root / name
        if path.name == RUN:
            run, machine = out["md5"], _machine(path, out["md5"])
        elif name == "report":
            files |= dict(_report(root, path))
            run, machine = out["md5"], _machine(path / RUN)
        else:
            files[name] = out["md5"]
            if name.endswith(NUMBERS) and path.is_file():
                numbers[name] = read_numbers(path)
    return StageRecord(run=run, machine=machine, files=files, numbers=numbers)


def _machine(path: Path, expected: str | None = None) -> dict[str, str]:
    """Who made a stage, from its run record, if that is still the one that dvc.lock knows."""
    if not path.is_file() or expected not in (None, md5(path)):
        return {}
    facts: dict[str, str] = json.loads(path.read_text()).get("machine", {})
    return facts


def _report(root: Path, folder: Path) -> Iterator[tuple[str, str]]:
    for pattern in REPORT:
        for path in sorted(folder.glob(pattern)):
            yield path.relative_to(root).as_posix(), md5(path)


def md5(path: Path) -> str:
    """As DVC has it."""
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def read_numbers(path: Path) -> Columns:
    """A metrics.json as one value a key, a CSV as one list a column; text that is no number stays text."""
    if path.suffix == ".json":
        return {key: [value] for key, value in _flat(json.loads(path.read_text()))}
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        return {
            name: [_value(row[name]) for row in listed] for listed in [list(rows)] for name in rows.fieldnames or []
        }


def _flat(content: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", float(value) if isinstance(value, int | float) else value


def _value(text: str) -> Value:
    try:
        return float(text)
    except ValueError:
        return text
