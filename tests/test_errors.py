"""User errors print without a traceback and exit with 2; everything else passes through."""

from __future__ import annotations

import pytest

from ccwm.errors import EXIT_CODE, UserError, did_you_mean, run_main


def fail_with(error: BaseException) -> None:
    raise error


def test_a_user_error_is_printed_with_its_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run_main(lambda: fail_with(UserError("train.batch is 0", hint="use 1")))
    assert caught.value.code == EXIT_CODE == 2
    assert capsys.readouterr().err == "error: train.batch is 0: use 1\n"


@pytest.mark.parametrize("error", [ValueError("a bug"), FileNotFoundError(2, "No such file", "x"), SystemExit(143)])
def test_everything_else_passes_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        run_main(lambda: fail_with(error))
    assert caught.value is error


def test_a_guess_names_the_nearest_and_all() -> None:
    told = did_you_mean("walker_wlak", ["walker_walk", "hopper_hop"])
    assert told.index("'walker_walk'") < told.index("hopper_hop")
    assert "?" not in did_you_mean("zzz", ["walker_walk"])
    assert did_you_mean("x", []) == ""
