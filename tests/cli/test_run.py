"""`ccwm run`: the stage gets its arguments, its signals and its exit code."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from cli_helpers import COMMAND, Ccwm

from ccwm.cells import STAGES


def test_an_unknown_stage_is_guessed(ccwm: Ccwm) -> None:
    code, out, err = ccwm("run", "rollout_viz")
    assert (code, out) == (2, "")
    assert err == f"error: unknown stage 'rollout_viz'. Did you mean 'rollout-viz'? Known: {', '.join(STAGES)}.\n"


def test_a_stage_gets_its_arguments_and_gives_its_exit_code(project: Path) -> None:
    (project / "pipeline" / "evaluate.py").write_text("import sys\nprint(sys.argv[1:])\nsys.exit(7)\n")
    done = subprocess.run([*COMMAND, "run", "evaluate", "--task", "x", "--seed", "0"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (7, "['--task', 'x', '--seed', '0']\n")


def test_a_stage_that_is_stopped_may_take_its_time(project: Path) -> None:
    """Training leaves a checkpoint when it is stopped, which takes longer than a parent process would wait."""
    script = """
import pathlib, signal, sys, time
def leave(*_):
    time.sleep(1)
    pathlib.Path("checkpoint").touch()
    sys.exit(130)
signal.signal(signal.SIGINT, leave)
pathlib.Path("started").touch()
time.sleep(60)
"""
    (project / "pipeline" / "train.py").write_text(script)
    stage = subprocess.Popen([*COMMAND, "run", "train"])
    deadline = time.monotonic() + 60
    while not (project / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    stage.send_signal(signal.SIGINT)
    assert stage.wait(60) == 130
    assert (project / "checkpoint").exists()
