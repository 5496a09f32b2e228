"""Run a command that ends with whoever asked for it: `python guard.py ALIVE DONE COMMAND…`.

``ALIVE`` and ``DONE`` are inherited pipes. When the asker dies, even by kill -9, ALIVE closes, and the command's whole
process group gets SIGTERM, then SIGKILL. Ray kills the direct children of a worker at its end, which would leave
the command without a guard, so the guard leaves its parent first. The exit code goes to DONE.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

GRACE = 30.0
"""Seconds for a checkpoint between SIGTERM and SIGKILL."""
PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Guard the command until it or its asker ends."""
    alive, done, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if os.fork():
        os._exit(0)
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of the command become ours to wait for
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    while child.poll() is None and not select.select([alive], [], [], 0.1)[0]:
        pass
    if child.poll() is None:
        _signal(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while _is_left(child) and time.monotonic() < deadline:
            time.sleep(0.05)
    _signal(child.pid, signal.SIGKILL)
    while _is_left(child):
        time.sleep(0.02)
    with suppress(BrokenPipeError):
        os.write(done, str(child.wait()).encode())


def _signal(group: int, signum: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signum)


def _is_left(child: subprocess.Popen[bytes]) -> bool:
    """Whether anyone of the group still runs; the dead are waited for."""
    child.poll()
    with suppress(ChildProcessError):
        while child.returncode is not None and os.waitpid(-1, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(child.pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
