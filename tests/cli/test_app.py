"""The `ccwm` command as a person meets it: help, answers on stdout, user errors in a line on stderr."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli_helpers import Ccwm

from ccwm.cli.app import app
from ccwm.cli.data import data
from ccwm.cli.params import params
from ccwm.cli.tracking import tracking

HEAVY = {"torch", "mlflow", "lightning", "mujoco", "optuna", "matplotlib"}


@pytest.mark.parametrize(
    ("group", "path"),
    [(app, []), (params, ["params"]), (data, ["data"]), (tracking, ["tracking"])],
    ids=["ccwm", "params", "data", "tracking"],
)
def test_help_lists_every_command_with_a_line(ccwm: Ccwm, group: object, path: list[str]) -> None:
    code, out, _ = ccwm(*path, "--help")
    assert code == 0
    commands = [info.name or info.callback.__name__ for info in group.registered_commands]
    commands += [info.name for info in group.registered_groups]
    for command in commands:
        (line,) = [line for line in out.splitlines() if f"│ {command} " in line]
        assert len(line.strip("│ ").split()) >= 4, line


def test_a_bare_command_shows_its_help(ccwm: Ccwm) -> None:
    _, out, err = ccwm()
    assert "ccwm [OPTIONS] COMMAND" in out + err  # before it stands how this process was started


def test_help_imports_nothing_heavy() -> None:
    code = f"import sys, ccwm.cli.app; print(sorted({HEAVY} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
