from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from safetensors.numpy import save_file

from ccwm.errors import UserError
from ccwm.readers import FLAG, NUMBER, OPTIONAL, TEXT, read_arrays, read_record, read_table

COLUMNS = {"name": TEXT, "value": NUMBER, "change": OPTIONAL, "kept": FLAG}
GOOD = "name,value,change,kept,more\na,1,,True,x\nb,2.5,0.5,False,y\n"


class Metrics(NamedTuple):
    episodes: int
    score: float | None


def test_a_table_has_its_columns_and_may_have_more(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(GOOD)
    frame = read_table(path, COLUMNS)
    assert frame["value"].tolist() == [1.0, 2.5]
    assert frame["change"].isna().tolist() == [True, False]
    assert frame["kept"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("value", "other"), r"lacks the column 'value'"),
        (GOOD.replace("2.5", "high"), r"'value' is 'high' in line 3, not a number"),
        (GOOD.replace("2.5", ""), r"'value' is 'nan' in line 3, not a number"),
        (GOOD.replace("2.5", "inf"), r"'value' is 'inf' in line 3, not a number"),
        (GOOD.replace("0.5", "much"), r"'change' is 'much' in line 3, not a number or empty"),
        (GOOD.replace("False", "maybe"), r"'kept' is 'True' in line 2|'kept' is 'maybe' in line 3"),
        (GOOD[:-1], "its last line is cut"),
        (GOOD[:-3] + "\n", "line 3 has 4 of 5 fields"),
        (GOOD + "\n", "line 4 has 0 of 5 fields"),
        (GOOD.replace("more", "value"), "a column stands twice"),
        (GOOD.replace("2.5", "True").replace("a,1", "a,True"), r"'value' is 'True' in line 2, not a number"),
        (GOOD.replace("2.5", "nan"), r"'value' is 'nan' in line 3, not a number"),
        (GOOD.replace("0.5", "nan"), r"'change' is 'nan' in line 3, not a number or empty"),
        ("", ""),
    ],
)
def test_a_bad_table_is_named_with_its_column(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"{path}.*({said})"):
        read_table(path, COLUMNS)


def test_further_columns_can_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("value,loss\n1,2\n2,nan\n")
    with pytest.raises(UserError, match="'loss' is 'nan' in line 3"):
        read_table(path, {"value": NUMBER}, others=OPTIONAL)


def test_a_table_without_rows_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\n")  # as write_csv has it
    assert read_table(path, COLUMNS).empty


def test_a_record_has_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text('{"episodes": 3, "score": null, "more": "x"}')
    assert read_record(path, Metrics) == (3, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"episodes": 3}', "lacks the key 'score'"),
        ('{"episodes": 2.5, "score": 1}', "'episodes' is 2.5, not a whole number"),
        ('{"episodes": null, "score": 1}', "'episodes' is None, not a number"),
        ('{"episodes": true, "score": 1}', "'episodes' is True, not a number"),
        ('{"episodes": NaN, "score": 1}', "'episodes' is nan, not a number"),
        ("[1]", ""),
        ("{", ""),
    ],
)
def test_a_bad_record_is_named_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"{path}.*{said}"):
        read_record(path, Metrics)


def test_arrays_are_read_by_name(tmp_path: Path) -> None:
    path = tmp_path / "frames.safetensors"
    save_file({"truth": np.arange(3)}, path)
    assert read_arrays(path, ["truth"])["truth"].tolist() == [0, 1, 2]
    with pytest.raises(UserError, match=rf"{path}.*other"):
        read_arrays(path, ["other"])


@pytest.mark.parametrize("read", [lambda path: read_table(path, {}), lambda path: read_record(path, Metrics),
                                  lambda path: read_arrays(path, [])])  # fmt: skip
def test_a_missing_file_is_a_user_error(tmp_path: Path, read) -> None:
    with pytest.raises(UserError, match=r"nothing.* is missing"):
        read(tmp_path / "nothing")
