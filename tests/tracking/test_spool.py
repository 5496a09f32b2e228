from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from ccwm.errors import UserError
from ccwm.tracking.spool import Identity, Record, Spool, read_identity


def new_spool(root: Path, run_id: str = "run") -> Spool:
    identity = Identity(id=run_id, experiment="ccwm", name="train")
    return Spool(root / identity.id, identity)


def values(spool: Spool, start: int = 0) -> list[object]:
    return [record["value"] for record, _ in spool.records(start)]


def size(spool: Spool) -> int:
    return (spool.directory / "journal.jsonl").stat().st_size


def test_a_line_torn_by_a_crash_is_dropped_and_the_journal_is_continued(tmp_path: Path) -> None:
    spool = new_spool(tmp_path)
    spool.append("status", value="first")
    spool.close()
    with (spool.directory / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"kind":"sta')
    again = Spool(spool.directory)
    again.append("status", value="second")
    assert values(again) == ["first", "second"]


def test_acknowledged_records_stay_acknowledged(tmp_path: Path) -> None:
    spool = new_spool(tmp_path)
    spool.append("status", value="sent")
    spool.identify(acknowledged=spool.unsent)
    spool.append("status", value="unsent")
    spool.close()
    again = Spool(spool.directory)
    assert values(again, again.identity.acknowledged) == ["unsent"]
    assert again.unsent == size(again) - again.identity.acknowledged > 0


def test_a_full_disk_leaves_the_journal_whole(tmp_path: Path) -> None:
    spool = new_spool(tmp_path)
    spool.append("status", value="first")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size(spool) + 20, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            spool.append("status", value="x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    spool.append("status", value="second")
    assert values(spool) == ["first", "second"]


def test_a_second_process_is_refused_by_name(tmp_path: Path) -> None:
    spool = new_spool(tmp_path)
    with pytest.raises(UserError, match=spool.identity.id):
        Spool(spool.directory)
    spool.close()
    Spool(spool.directory).close()


def test_a_run_that_is_resumed_has_its_old_spool(tmp_path: Path) -> None:
    spool = new_spool(tmp_path, "ours")
    spool.append("status", value="first")
    spool.identify(mlflow_run_id="theirs")
    spool.close()
    again = new_spool(tmp_path, "ours")
    assert (values(again), again.identity) == (["first"], spool.identity)


def test_an_id_that_leaves_the_spool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="id"):
        new_spool(tmp_path / "spool", "../elsewhere")
    assert not (tmp_path / "elsewhere").exists()


LINES = (b"{", b"[]", b'{"kind": [], "time": 1}', b'{"kind": "status"}', b'{"kind": "x", "time": 1}', b"[" * 100_000)


@pytest.mark.parametrize("line", LINES)
def test_a_damaged_journal_is_named(tmp_path: Path, line: bytes) -> None:
    Spool(tmp_path / "run", Identity(id="run", experiment="e", name="n")).close()
    (tmp_path / "run" / "journal.jsonl").write_bytes(line + b"\n")
    with pytest.raises(UserError, match=r"journal\.jsonl.* is damaged"):
        Spool(tmp_path / "run")


def test_a_damaged_identity_is_named(tmp_path: Path) -> None:
    Spool(tmp_path / "run", Identity(id="run", experiment="e", name="n")).close()
    (tmp_path / "run" / "spool.json").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"spool\.json is damaged"):
        read_identity(tmp_path / "run")
    (tmp_path / "run" / "spool.json").unlink()
    with pytest.raises(UserError, match=r"spool\.json is damaged \(it is missing\)"):
        Spool(tmp_path / "run")


def closed_spool(root: Path) -> tuple[Path, list[Record]]:
    """A spool of three records, closed before the store had any, and what it says."""
    spool = new_spool(root)
    spool.append("metrics", env_steps=5, values={"loss": 0.5})
    spool.append("metrics", env_steps=6, values={"loss": 0.6})
    spool.set_status("FINISHED")
    said = [record for record, _ in spool.records()]
    spool.close()
    return spool.directory, said


@pytest.mark.parametrize("name", ["journal.jsonl", "spool.json"])
def test_no_byte_can_change_unnoticed(tmp_path: Path, name: str) -> None:
    directory, _ = closed_spool(tmp_path)
    path = directory / name
    written = path.read_bytes()
    for place in range(len(written)):
        path.write_bytes(written[:place] + bytes([written[place] ^ 1]) + written[place + 1 :])
        with pytest.raises(UserError, match=f"{name}.* is damaged"):
            Spool(directory)
        path.write_bytes(written)
    Spool(directory).close()


DAMAGE: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "lost": lambda lines: lines[1:],
    "lost at the end": lambda lines: lines[:-1],
    "torn": lambda lines: [*lines[:-1], lines[-1][:-1]],
    "moved": lambda lines: [lines[1], lines[0], *lines[2:]],
    "doubled": lambda lines: [lines[0], *lines],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_no_line_can_be_lost_or_moved_unnoticed(tmp_path: Path, kind: str) -> None:
    directory, _ = closed_spool(tmp_path)
    path = directory / "journal.jsonl"
    path.write_bytes(b"".join(DAMAGE[kind](path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(UserError, match=r"journal\.jsonl.* is damaged"):
        Spool(directory)


def test_a_spool_of_an_older_version_is_read_and_continued(tmp_path: Path) -> None:
    directory, said = closed_spool(tmp_path)
    journal, identity = directory / "journal.jsonl", directory / "spool.json"
    plain = [json.dumps(record) for record in said]
    journal.write_text("".join(f"{line}\n" for line in plain))
    known = json.loads(identity.read_text())
    identity.write_text(json.dumps({key: value for key, value in known.items() if key not in ("sum", "size")}))
    spool = Spool(directory)
    spool.append("tags", values={"a": "b"})
    spool.close()
    again = Spool(directory)
    assert [record for record, _ in again.records()][:-1] == said
    assert again.identity.size == again.unsent == size(again)
