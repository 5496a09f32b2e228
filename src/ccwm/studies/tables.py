"""Tables and arrays as files, for the studies that write many of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
from safetensors.numpy import save

from ccwm.files import write_atomically
from ccwm.readers import FLAG, NUMBER, OPTIONAL, TEXT, read_table

KINDS = {str: TEXT, bool: FLAG, int: NUMBER, float: NUMBER}


def write_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns, or one value for all lines, as a CSV file; what is NaN, or beyond a column's end, is empty."""
    series = {name: pd.Series(of) if np.ndim(of) else of for name, of in columns.items()}
    write_atomically(path, pd.DataFrame(series).to_csv(index=False, lineterminator="\n").encode())


def read_rows(path: Path, row: type[tuple[Any, ...]]) -> pd.DataFrame:
    """A CSV file with a line for each ``row``, a NamedTuple whose types say what its columns hold."""
    return read_table(path, {name: KINDS.get(of, OPTIONAL) for name, of in get_type_hints(row).items()})


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name as a safetensors file."""
    write_atomically(path, save({name: np.ascontiguousarray(of) for name, of in arrays.items()}))
