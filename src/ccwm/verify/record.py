"""What a run of the pipeline left, in a form that can be compared: hashes, numbers, and the machine that made them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ccwm.errors import UserError
from ccwm.files import md5, write_json
from ccwm.readers import read_object
from ccwm.settings.parsing import read_yaml
from ccwm.settings.section import Section

RESULTS = Path("verify/results.json")
"""The machine behind each stage of the committed dvc.lock, beside the hashes of what it made."""

NUMBERS = ("metrics.json", ".csv")

Value = float | str | None
Columns = dict[str, list[Value]]


class StageRecord(Section):
    """One cell of the matrix."""

    machine: dict[str, str]
    """Empty where it is not known."""
    files: dict[str, str]
    """Path → MD5 of each output, as ``dvc.lock`` has it."""
    numbers: dict[str, Columns]
    """Path → the values of a metrics.json by dotted key, or of a CSV by column."""


class Record(Section):
    """All cells of the matrix, by DVC's names."""

    stages: dict[str, StageRecord]


def load_record(path: Path, *, hint: str) -> Record:
    """Read a committed record."""
    try:
        return Record.model_validate_json(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{path.name} is missing", hint=hint) from None
    except ValidationError as error:
        raise UserError(f"{path.name} is no record of this version ({error.errors()[0]['msg']})", hint=hint) from None


def save_record(path: Path, record: Record) -> None:
    """Write a record, its stages in order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"stages": {name: stage.model_dump() for name, stage in sorted(record.stages.items())}})


def read_lock(root: Path) -> dict[str, Any]:
    """The stages of dvc.lock by name; none where there is no such file."""
    path = root / "dvc.lock"
    stages: dict[str, Any] = read_yaml(path, bounded=False)["stages"] if path.is_file() else {}
    return stages


def read_checkout(root: Path) -> Record:
    """What dvc.lock, the result files and, where they are there, the run records say."""
    stages = {}
    for name, entry in read_lock(root).items():
        files = {out["path"]: out["md5"] for out in entry["outs"]}
        numbers = {path: read_numbers(root / path) for path in files if _is_numbers(root / path)}
        stages[name] = StageRecord(machine=_machine(root, name, files), files=files, numbers=numbers)
    return Record(stages=stages)


def with_machines(record: Record, known: Record) -> Record:
    """Add the machines of ``known`` where they made the very files that the record names."""
    stages = dict(record.stages)
    for name, made in known.stages.items():
        if name in stages and made.files == stages[name].files:
            stages[name] = stages[name].model_copy(update={"machine": made.machine})
    return Record(stages=stages)


def edited_files(root: Path) -> dict[str, list[str]]:
    """By stage, the number files in git that are no longer those which dvc.lock names."""
    found: dict[str, list[str]] = {}
    for name, entry in read_lock(root).items():
        for out in entry["outs"]:
            if _is_numbers(root / out["path"]) and md5(root / out["path"]) != out["md5"]:
                found.setdefault(name, []).append(out["path"])
    return found


def _is_numbers(path: Path) -> bool:
    return path.name.endswith(NUMBERS) and path.is_file()


def _machine(root: Path, name: str, files: dict[str, str]) -> dict[str, str]:
    """The machine that made a stage, from its run.json; none where dvc.lock or the files are other ones."""
    stage = name.partition("@")[0]
    folder = next((Path(path).parent for path in files if path.startswith(f"results/{stage}/")), f"results/{stage}")
    path = root / folder / "run.json"
    run = read_object(path) if path.is_file() else {}
    made, facts = run.get("files"), run.get("machine")
    if not isinstance(made, dict) or not isinstance(facts, dict):
        return {}
    now = {name: md5(root / name) for name in made if (root / name).is_file()}  # pictures need not be there
    same = all(value == files.get(name, value) == now.get(name, value) for name, value in made.items())
    return facts if same else {}


def read_numbers(path: Path) -> Columns:
    """A metrics.json as one value a key, a CSV as one list a column; text that is no number stays text."""
    if path.suffix == ".json":
        return {key: [value] for key, value in _flat(json.loads(path.read_text()))}
    with path.open(newline="") as file:
        header, *rows = [row for row in csv.reader(file) if row] or [[]]
    return {name: [_value(row[column]) for row in rows] for column, name in enumerate(header)}


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
