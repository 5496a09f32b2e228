"""Errors of the user and of the file system print without a traceback; everything else passes through."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from ccwm.errors import EXIT_CODE, UserError, did_you_mean, run_main
from ccwm.files import write_atomically


def fail_with(error: BaseException) -> None:
    raise error


def test_a_user_error_is_printed_with_its_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run_main(lambda: fail_with(UserError("train.batch is 0", hint="use 1")))
    assert caught.value.code == EXIT_CODE == 2
    assert capsys.readouterr().err == "error: train.batch is 0: use 1\n"


@pytest.mark.parametrize("error", [ValueError("a bug"), ConnectionRefusedError(111, "refused"), SystemExit(143)])
def test_everything_else_passes_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        run_main(lambda: fail_with(error))
    assert caught.value is error


@contextmanager
def no_room() -> Iterator[None]:
    """Within, no file may grow beyond ten bytes."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


@pytest.mark.parametrize("kind", ["a file in the way", "missing directory", "read-only", "full disk"])
def test_a_failure_of_the_file_system_is_one_sentence(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path("/sys") if kind == "read-only" else tmp_path / "results"  # there, not even root may write
    if kind == "a file in the way":
        folder.write_text("no directory")
    elif kind == "full disk":
        folder.mkdir()
    room = no_room() if kind == "full disk" else nullcontext()
    with pytest.raises(SystemExit) as caught, room:
        run_main(lambda: write_atomically(folder / "metrics.json", b"x" * 100))
    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {folder}/")
    assert said.count("\n") == 1
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_guess_names_the_nearest_and_all() -> None:
    told = did_you_mean("walker_wlak", ["walker_walk", "hopper_hop"])
    assert told.index("'walker_walk'") < told.index("hopper_hop")
    assert "?" not in did_you_mean("zzz", ["walker_walk"])
    assert did_you_mean("x", []) == ""
