from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ccwm.errors import UserError
from ccwm.studies.tables import read_rows, write_columns


class Line(NamedTuple):
    name: str
    step: int
    value: float
    own: bool
    change: float | None


def test_columns_are_written_with_full_precision_and_read_by_their_types(tmp_path: Path):
    path = tmp_path / "x.csv"
    columns = {"name": ["a", "b"], "step": np.arange(2), "value": 1 / 3, "own": np.array([True, False])}
    write_columns(path, {**columns, "change": np.array([np.nan, 1e-7]), "late": np.array([2.5])})
    assert path.read_text() == (
        "name,step,value,own,change,late\na,0,0.3333333333333333,True,,2.5\nb,1,0.3333333333333333,False,1e-07,\n"
    )
    frame = read_rows(path, Line)
    assert frame["own"].tolist() == [True, False]
    assert frame["change"].isna().tolist() == [True, False]


@pytest.mark.parametrize(("old", "new", "named"), [("True", "3", "own"), ("0.3333333333333333", "", "value")])
def test_what_a_type_does_not_allow_is_refused(tmp_path: Path, old: str, new: str, named: str):
    path = tmp_path / "x.csv"
    path.write_text("name,step,value,own,change\na,0,0.3333333333333333,True,\n".replace(old, new))
    with pytest.raises(UserError, match=rf"x.csv: '{named}'"):
        read_rows(path, Line)
