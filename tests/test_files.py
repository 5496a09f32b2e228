"""Files and directories appear whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import resource
import shutil
import signal
from pathlib import Path

import pytest
from project import SERVER

from ccwm.files import published, write_atomically, write_csv, write_json


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_json_keeps_order_and_precision(tmp_path: Path) -> None:
    content = {"b": 0.1 + 0.2, "a": [1, None]}
    write_json(tmp_path / "x.json", content)
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text) == content
    assert text.index('"b"') < text.index('"a"')
    assert text.endswith("}\n")


def test_json_refuses_nan_and_keeps_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}
    assert names(tmp_path) == ["x.json"]


def test_csv_takes_columns_as_they_first_appear_and_leaves_gaps_empty(tmp_path: Path) -> None:
    write_csv(tmp_path / "x.csv", [{"b": 1 / 3, "a": 2}, {"a": 3, "c": "x,y"}])
    assert (tmp_path / "x.csv").read_text() == f'b,a,c\n{1 / 3!r},2,\n,3,"x,y"\n'
    with (tmp_path / "x.csv").open() as file:
        assert float(next(csv.DictReader(file))["b"]) == 1 / 3


def write_beyond_the_limit(path: Path, limit: int) -> None:
    """Exit 3 where files may not grow beyond ``limit`` bytes and the write says so."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        write_atomically(path, b"new" * limit)
    except OSError:
        os._exit(3)


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    write_atomically(tmp_path / "x", b"old")
    writer = SERVER.Process(daemon=True, target=write_beyond_the_limit, args=(tmp_path / "x", 1000))
    writer.start()
    writer.join()
    assert writer.exitcode == 3
    assert (tmp_path / "x").read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


def test_a_published_directory_replaces_the_old_one_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "results"
    for number in range(2):
        with published(target) as folder:
            (folder / f"{number}.txt").touch()
            assert not (target / f"{number}.txt").exists()
        assert names(target) == [f"{number}.txt"]
        assert names(target.parent) == ["results"]


def test_a_directory_that_could_not_be_filled_is_not_published(tmp_path: Path) -> None:
    target = tmp_path / "results"
    with published(target) as folder:
        (folder / "old.txt").touch()
    with pytest.raises(FileNotFoundError), published(target) as folder:
        shutil.copy("/nowhere", folder / "new.txt")
    assert names(tmp_path) == ["results"]
    assert names(target) == ["old.txt"]


def test_what_a_killed_process_left_does_not_get_published(tmp_path: Path) -> None:
    (tmp_path / ".results.tmp").mkdir()
    (tmp_path / ".results.tmp" / "dead.txt").touch()
    with published(tmp_path / "results") as folder:
        (folder / "alive.txt").touch()
    assert names(tmp_path) == ["results"]
    assert names(tmp_path / "results") == ["alive.txt"]
