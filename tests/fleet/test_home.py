"""What home takes in: files that are what their hashes say, in the cell's own directories."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from project import DVC

from ccwm.cells import Cell
from ccwm.errors import UserError
from ccwm.fleet import ARRIVED
from ccwm.fleet.home import Home, held, is_held
from ccwm.fleet.parcel import LOCK, pack, unpack
from ccwm.settings.schema import Study

COLLECT, TRAIN, EVALUATE = Cell("collect", "maze", seed=0), *(Cell(s, "maze", "ccwm", 0) for s in ("train", "evaluate"))
CURVE = "results/train/maze/ccwm/0/curve.csv"
MODEL = {"path": "models/maze/ccwm/0", "md5": "abc.dir"}


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def parcel(files: dict[str, bytes], *outs: dict[str, str], remote: bool = False) -> bytes:
    entry = {"cmd": "python", "deps": [], "outs": [*outs]}
    return pack({LOCK: json.dumps({"entry": entry, "remote": remote}).encode(), **files})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home" / ARRIVED).mkdir(parents=True)
    study = Study(tasks=["maze"], variants=["ccwm"], seeds=[0])
    return Home(tmp_path / "home", study, mirror=tmp_path / "evidence")


def test_small_files_go_home_and_to_the_mirror(home: Home, tmp_path: Path) -> None:
    record = TRAIN.record.as_posix()
    sent = {CURVE: b"1", record: b"{}", "spool/7/journal.jsonl": b"{}\n"}
    home.receive(TRAIN, parcel(sent, {"path": CURVE, "md5": md5(b"1")}, MODEL), "key")
    for root in (home.root, tmp_path / "evidence"):
        assert (root / CURVE).read_bytes() == b"1"
        assert (root / record).read_bytes() == b"{}"
    assert (home.root / ".work" / "spool" / "7" / "journal.jsonl").is_file()
    assert not (tmp_path / "evidence" / ".work").exists()
    assert home.took_spools
    assert home.is_due
    assert (home.root / ARRIVED / f"{TRAIN}.key.tar").is_file()  # until DVC has it
    assert unpack(home.inputs(TRAIN.of("transfer")))[CURVE] == b"1"


def both(path: str) -> tuple[dict[str, bytes], list[dict[str, str]]]:
    """A file and the lock's word for it."""
    return {path: b"1"}, [{"path": path, "md5": md5(b"1")}]


@pytest.mark.parametrize(
    ("files", "outs"),
    [
        ({CURVE: b"2"}, [{"path": CURVE, "md5": md5(b"1")}]),
        ({CURVE: b"1"}, []),
        both("src/ccwm/cells.py"),
        both("results/train/maze/ccwm/1/curve.csv"),
        both("results/train/maze/ccwm/0/../a"),
        ({}, [{"path": "params.yaml", "md5": "0"}]),
        ({"spool/../../params.yaml": b"1"}, []),
        ({"/etc/passwd": b"1"}, []),
    ],
)
def test_what_is_not_the_cell_s_is_refused_and_forgotten(
    home: Home, tmp_path: Path, files: dict[str, bytes], outs: list[dict[str, str]]
) -> None:
    with pytest.raises(UserError, match="refused"):
        home.receive(TRAIN, parcel(files, *outs), "key")
    assert home.entries == {}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_parcel_of_links_or_of_garbage_is_refused() -> None:
    import io
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        link = tarfile.TarInfo("a")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    for bad in (buffer.getvalue(), b"\x80\x04garbage"):
        with pytest.raises(UserError, match="parcel"):
            unpack(bad)


def test_a_cell_behind_others_stays_if_they_made_the_same_again(home: Home) -> None:
    def entry(deps: list[Any], outs: list[Any]) -> dict[str, Any]:
        return {"cmd": "", "deps": deps, "outs": outs}

    code = {"path": "src/a.py", "md5": "1"}
    home.entries = {
        str(COLLECT): entry([code], []),
        str(TRAIN): entry([code], [MODEL]),
        str(EVALUATE): entry([code, MODEL], []),
    }
    assert home.is_unchanged(EVALUATE)
    home.entries[str(TRAIN)] = entry([code], [{**MODEL, "md5": "other.dir"}])
    assert not home.is_unchanged(EVALUATE)


def test_one_fleet_at_a_time(home: Home) -> None:
    assert not is_held(home.root)
    with held(home.root):
        assert is_held(home.root)
        with pytest.raises(UserError, match="another fleet"), held(home.root):
            pass
    assert not is_held(home.root)


def test_what_dvc_s_cache_holds_is_laid_out_and_nothing_is_entered_that_it_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / ARRIVED).mkdir(parents=True)
    item = "${item.task}/${item.variant}/${item.seed}"
    stages = {"train": {"matrix": {"task": ["maze"], "variant": ["ccwm"], "seed": [0, 1]}}}
    stages["train"] |= {"cmd": "python", "outs": [f"models/{item}"]}
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": stages}))
    subprocess.run([*DVC, "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    cache = tmp_path / ".dvc" / "cache" / "files" / "md5"
    listing = json.dumps([{"md5": md5(b"weights"), "relpath": "w"}]).encode()
    for content, suffix in ((b"weights", ""), (listing, ".dir")):
        (cache / md5(content)[:2]).mkdir(parents=True, exist_ok=True)
        (cache / md5(content)[:2] / f"{md5(content)[2:]}{suffix}").write_bytes(content)
    home = Home(tmp_path, Study(tasks=["maze"], variants=["ccwm"], seeds=[0, 1]))
    out = {"md5": f"{md5(listing)}.dir", "hash": "md5"}
    home.receive(TRAIN, parcel({}, {"path": "models/maze/ccwm/0", **out}), "key")
    home.settle()
    assert (tmp_path / "models" / "maze" / "ccwm" / "0" / "w").read_bytes() == b"weights"

    before = (tmp_path / "dvc.lock").read_bytes()
    assert b"train@maze-ccwm-0" in before
    lost = {"path": "models/maze/ccwm/1", **out, "md5": f"{md5(b'lost')}.dir"}
    home.receive(Cell("train", "maze", "ccwm", 1), parcel({}, lost), "key")
    with pytest.raises(UserError, match=r"does not hold .*models/maze/ccwm/1, which train@maze-ccwm-1 has made"):
        home.settle()
    assert (tmp_path / "dvc.lock").read_bytes() == before
