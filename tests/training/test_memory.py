import subprocess
import sys

PROGRAM = """
import os, sys
import numpy as np
from ccwm.training.memory import keep_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

if sys.argv[1] == "keep":
    assert keep_freed_memory()
before = resident()
np.ones(8_000_000)
print(resident() - before)
"""


def grown_by(how: str) -> int:
    """Bytes that stay with a process after it has filled and freed a buffer of 64 MB."""
    return int(subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True).stdout)


def test_a_buffer_that_was_freed_stays_for_the_next():
    assert grown_by("plain") < 16e6  # beyond 32 MB glibc gives every buffer back, however often one is asked for
    assert grown_by("keep") > 60e6
