"""Result files read back and checked: what does not fit raises a user error that names the file and the key."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ccwm.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

NUMBER, OPTIONAL, FLAG, TEXT = "a number", "a number or empty", "True or False", "text"
"""What a column of a table holds."""

Record = TypeVar("Record", bound=tuple[Any, ...])


class BadResult(UserError):
    """A result file is missing or does not hold what its writer writes."""


def read_table(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """A CSV file whose columns hold what ``columns`` says by name; others may be there too."""
    import pandas as pd  # here, since collect and train write tables and read none

    with reading(path, "CSV table"):
        frame = pd.read_csv(path)
    for name, kind in columns.items():
        if name not in frame:
            raise BadResult(f"{path} lacks the column {name!r}")
        if kind == TEXT or frame.empty:
            continue
        values = frame[name]
        if kind == FLAG:
            wrong = ~values.isin([True, False]).to_numpy()
        else:
            wrong = ~np.isfinite(pd.to_numeric(values, errors="coerce").to_numpy(float))
            wrong &= values.notna().to_numpy() | (kind == NUMBER)
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
    for name, type_name in kind.__annotations__.items():
        if name not in content:
            raise BadResult(f"{path} lacks the key {name!r}")
        value = content[name]
        if not is_number(value) and (value is not None or "None" not in str(type_name)):
            raise BadResult(f"{path}: {name!r} is {value!r}, not a number")
    return kind(**{name: content[name] for name in kind.__annotations__})


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name."""
    from safetensors.numpy import load_file

    with reading(path, "file with these arrays"):
        arrays = load_file(path)
        return {name: arrays[name] for name in names}


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Within, a file that is missing or no valid ``kind`` raises BadResult."""
    try:
        yield
    except FileNotFoundError:
        raise BadResult(f"{path} is missing") from None
    except Exception as error:  # each library has errors of its own for a damaged file
        raise BadResult(f"{path} is no valid {kind} ({error})") from error


def is_number(value: object) -> bool:
    """Whether a value of a JSON file is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
