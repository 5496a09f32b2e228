import subprocess
import sys

PROGRAM = """
import resource, sys
import torch
from ccwm.training.memory import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()
for _ in range(50):
    torch.ones(4_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def page_faults(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True).stdout)


def test_a_buffer_that_was_freed_is_not_faulted_in_again():
    # 50 buffers of 16 MB are 200,000 pages of 4 KiB; kept, they are faulted in once.
    assert page_faults("plain") - page_faults("keep") > 50_000
