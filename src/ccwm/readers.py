"""Result files read back and checked: what does not fit raises a user error that names the file and the key."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

import numpy as np

from ccwm.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

NUMBER, OPTIONAL, FLAG, TEXT = "a number", "a number or empty", "True or False", "text"
"""What a column of a table holds."""

Record = TypeVar("Record", bound=tuple[Any, ...])


class BadResult(UserError):
    """A result file does not hold what its writer writes."""


class MissingResult(BadResult):
    """A result file is not there."""


def read_table(path: Path, columns: Mapping[str, str], others: str = TEXT) -> pd.DataFrame:
    """A CSV file whose columns hold what ``columns`` says by name; further ones hold ``others``."""
    import pandas as pd  # here, since collect and train write tables and read none

    with reading(path, "CSV table"):
        text = path.read_bytes().decode()
        if not text.endswith("\n"):  # every writer ends a line
            raise ValueError("its last line is cut")
        header, *lines = list(csv.reader(io.StringIO(text))) or [[]]
        if not header:  # what is written where there are no rows
            return pd.DataFrame(columns=[*columns])
        if len({*header}) < len(header):
            raise ValueError("a column stands twice")
        if odd := [number for number, line in enumerate(lines, 2) if len(line) != len(header)]:
            raise ValueError(f"line {odd[0]} has {len(lines[odd[0] - 2])} of {len(header)} fields")
        frame = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""], skip_blank_lines=False)
    if absent := [name for name in columns if name not in frame]:
        raise BadResult(f"{path} lacks the column {absent[0]!r}")
    for name in header:
        kind, values = columns.get(name, others), frame[name]
        if kind == TEXT or frame.empty:
            continue
        if kind == FLAG:
            wrong = ~values.isin([True, False]).to_numpy()
        else:
            wrong = ~np.isfinite(pd.to_numeric(values, errors="coerce").to_numpy(float))
            wrong &= values.notna().to_numpy() | (kind == NUMBER)
            wrong |= values.to_numpy().dtype == bool
        if wrong.any():
            line = int(np.flatnonzero(wrong)[0])
            raise BadResult(f"{path}: {name!r} is {str(values.iloc[line])!r} in line {line + 2}, not {kind}")
    return frame


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    with reading(path, "JSON file"):
        content = json.loads(path.read_text("utf-8"))
    if not isinstance(content, dict):
        raise BadResult(f"{path} holds no JSON object")
    return content


def read_record(path: Path, kind: type[Record]) -> Record:
    """The keys of a JSON object that the NamedTuple ``kind`` has, each a finite number, or None where it may be."""
    content = read_object(path)
    for name, hint in get_type_hints(kind).items():
        if name not in content:
            raise BadResult(f"{path} lacks the key {name!r}")
        value = content[name]
        if not is_number(value) and (value is not None or type(None) not in get_args(hint)):
            raise BadResult(f"{path}: {name!r} is {value!r}, not a number")
        if hint is int and value != int(value):
            raise BadResult(f"{path}: {name!r} is {value!r}, not a whole number")
    return kind(**{name: content[name] for name in kind.__annotations__})


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name, all of them finite."""
    from safetensors.numpy import load_file

    with reading(path, "file with these arrays"):
        arrays = {name: of for name, of in load_file(path).items() if name in {*names}}
        if lacking := [name for name in names if name not in arrays]:
            raise ValueError(f"it lacks {lacking[0]!r}")
        if bad := [name for name, of in arrays.items() if not np.isfinite(of).all()]:
            raise ValueError(f"{bad[0]!r} is not finite")
    return arrays


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Within, a file that is missing or no valid ``kind`` raises BadResult."""
    try:
        yield
    except FileNotFoundError:
        raise MissingResult(f"{path} is missing") from None
    except Exception as error:  # each library has errors of its own for a damaged file
        raise BadResult(f"{path} is no valid {kind} ({error})") from error


def is_number(value: object) -> bool:
    """Whether a value of a JSON file is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
