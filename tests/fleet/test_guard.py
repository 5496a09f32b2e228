"""A guarded command ends with whoever asked for it, and nobody of its group is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from project import assert_ended, is_alive

from ccwm.fleet import guard

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("checkpoint", flush=True), sys.exit(143)))
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, os.getppid(), flush=True)
time.sleep(600)
"""


def start(log: Path, *command: str) -> tuple[int, int]:
    """A guarded command; its asker's end of ALIVE, and the end of DONE that can be read."""
    alive, hold = os.pipe()
    done, report = os.pipe()
    with log.open("wb") as output:
        subprocess.run(
            [sys.executable, guard.__file__, str(alive), str(report), *command],
            stdout=output,
            pass_fds=(alive, report),
            check=True,
        )
    os.close(alive)
    os.close(report)
    return hold, done


def said(log: Path) -> list[str]:
    return log.read_text().split()


def test_it_tells_the_exit_code(tmp_path: Path) -> None:
    hold, done = start(tmp_path / "log", sys.executable, "-S", "-c", "print('hello'); raise SystemExit(7)")
    assert os.read(done, 16) == b"7"
    assert os.read(done, 16) == b""
    assert said(tmp_path / "log") == ["hello"]
    os.close(hold)
    os.close(done)


def test_the_whole_group_ends_with_the_asker_after_a_checkpoint(tmp_path: Path) -> None:
    log = tmp_path / "log"
    hold, done = start(log, sys.executable, "-S", "-c", STUBBORN)
    while len(said(log)) < 3:
        time.sleep(0.02)
    processes = [int(pid) for pid in said(log)]
    assert all(is_alive(pid) for pid in processes)
    assert os.getpid() not in processes
    os.close(hold)
    assert os.read(done, 16) == b"143"
    assert_ended(processes)
    assert said(log)[3:] == ["checkpoint"]
    os.close(done)


def test_what_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = tmp_path / "guard.py"
    impatient.write_text(Path(guard.__file__).read_text().replace("GRACE = 30.0", "GRACE = 0.5"))
    monkeypatch.setattr(guard, "__file__", str(impatient))
    ignoring = STUBBORN.replace("lambda *_: (print", "signal.SIG_IGN) or (lambda *_: (print", 1)
    log = tmp_path / "log"
    hold, done = start(log, sys.executable, "-S", "-c", ignoring)
    while len(said(log)) < 3:
        time.sleep(0.02)
    os.close(hold)
    assert os.read(done, 16) == str(-signal.SIGKILL).encode()
    assert_ended([int(pid) for pid in said(log)])
    os.close(done)
