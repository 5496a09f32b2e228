"""Checkpoints: whole, checked, free of code, and never all lost at once."""

from __future__ import annotations

import hashlib
import io
import os
import resource
import signal
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from project import SERVER

from ccwm.training.checkpoints import VERSION, Checkpoints, NoCheckpoint, OtherCheckpoint


def content(number: int) -> dict[str, Any]:
    return {"number": number, "weights": torch.full((1000,), float(number))}


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    """Three were saved, so that the last two are there."""
    kept = Checkpoints(tmp_path / "checkpoints")
    for number in range(3):
        kept.save(content(number))
    return kept


def newest(checkpoints: Checkpoints) -> Path:
    return max(checkpoints.directory.glob("*.pt"))


def number_of(checkpoints: Checkpoints) -> int:
    saved = checkpoints.latest()
    assert saved is not None
    assert torch.equal(saved["weights"], content(saved["number"])["weights"])
    return int(saved["number"])


def test_the_last_two_are_kept(checkpoints: Checkpoints) -> None:
    names = sorted(path.name for path in checkpoints.directory.iterdir())
    assert names == ["000001.pt", "000001.sha256", "000002.pt", "000002.sha256"]
    assert number_of(checkpoints) == 2


def test_none_at_all_is_a_fresh_start(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path).latest() is None


def test_a_kill_before_the_first_checkpoint_was_whole_is_a_fresh_start(checkpoints: Checkpoints) -> None:
    """The sum is written first, so that this is all that a kill between the two files can leave."""
    for path in checkpoints.directory.glob("*.pt"):
        path.unlink()
    assert checkpoints.latest() is None
    checkpoints.save(content(7))
    assert number_of(checkpoints) == 7


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(torch.full((4,), 2.0).numpy().tobytes())] ^= 1  # a weight; torch alone would load it
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lose_the_sum(path: Path) -> None:
    path.with_suffix(".sha256").unlink()


@pytest.mark.parametrize("damage", [cut, flip_a_bit, empty, lose_the_sum])
def test_a_damaged_newest_one_gives_way_to_the_previous(
    checkpoints: Checkpoints, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    damage(newest(checkpoints))
    assert number_of(checkpoints) == 1
    assert "000002.pt" in caplog.text


def test_none_left_is_refused(checkpoints: Checkpoints) -> None:
    for path in checkpoints.directory.glob("*.pt"):
        cut(path)
    with pytest.raises(NoCheckpoint, match="none of the 2 checkpoints"):
        checkpoints.latest()


def test_another_version_is_refused_by_name(checkpoints: Checkpoints) -> None:
    checkpoints.save({**content(3), "version": 99})
    with pytest.raises(OtherCheckpoint, match=rf"000003\.pt .*version \(99 there, {VERSION} here\)"):
        checkpoints.latest()


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    settings = {"train.batch": 4, "model.depth": 2, "seed": 0}
    Checkpoints(tmp_path, settings=settings).save(content(1))
    assert number_of(Checkpoints(tmp_path, settings=dict(settings))) == 1
    assert number_of(Checkpoints(tmp_path)) == 1  # whoever only looks compares nothing
    told = r"000000\.pt .*model\.depth \(2 there, 3 here\), train\.batch \(4 there, 8 here\)"
    with pytest.raises(OtherCheckpoint, match=told):
        Checkpoints(tmp_path, settings={**settings, "train.batch": 8, "model.depth": 3}).latest()


def test_the_best_is_kept_beside_the_last_two(checkpoints: Checkpoints) -> None:
    for number in (10, 11):
        checkpoints.save_best(content(number))
    checkpoints.save(content(3))
    names = sorted(path.name for path in checkpoints.directory.glob("*.pt"))
    assert names == ["000002.pt", "000003.pt", "best-000001.pt"]
    best = checkpoints.best()
    assert best is not None
    assert (best["number"], number_of(checkpoints)) == (11, 3)


def test_a_damaged_best_is_refused_and_harms_no_other(checkpoints: Checkpoints) -> None:
    checkpoints.save_best(content(10))
    cut(checkpoints.directory / "best-000000.pt")
    with pytest.raises(NoCheckpoint):
        checkpoints.best()
    assert number_of(checkpoints) == 2


def test_no_code_of_a_malicious_pickle_runs(checkpoints: Checkpoints, tmp_path: Path) -> None:
    """A real one, in torch's own format, with a valid sum beside it."""
    trace = tmp_path / "trace"
    command = f"cposix\nsystem\n(Vtouch {trace}\ntR.".encode()  # os.system("touch <trace>")
    path = newest(checkpoints)
    source, target = zipfile.ZipFile(path), io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, command if name.endswith("data.pkl") else source.read(name))
    path.write_bytes(target.getvalue())
    path.with_suffix(".sha256").write_text(hashlib.sha256(target.getvalue()).hexdigest())
    assert number_of(checkpoints) == 1
    assert not trace.exists()
    torch.load(path, weights_only=False)  # so it was a live one
    assert trace.exists()


def save_with_limit(directory: Path, limit: int) -> None:
    """Exit 3 where files may not grow beyond ``limit`` bytes and the save says so."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        Checkpoints(directory).save(content(3))
    except OSError:
        os._exit(3)


@pytest.mark.parametrize("limit", [10, 1000])  # the sum does not fit; the sum does, the checkpoint does not
def test_a_full_disk_leaves_the_previous_ones_and_nothing_else(checkpoints: Checkpoints, limit: int) -> None:
    before = {path.name: path.read_bytes() for path in checkpoints.directory.iterdir()}
    writer = SERVER.Process(daemon=True, target=save_with_limit, args=(checkpoints.directory, limit))
    writer.start()
    writer.join()
    assert writer.exitcode == 3
    assert {path.name: path.read_bytes() for path in checkpoints.directory.iterdir()} == before
    checkpoints.save(content(3))  # there is room again
    assert number_of(checkpoints) == 3
