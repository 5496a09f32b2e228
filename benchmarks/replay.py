"""Does sampling stay cheap as replay grows?  python benchmarks/replay.py [--steps 1000000]

Builds a small and a large store of synthetic episodes of 64 × 64 pixels in a temporary directory, draws 64 × 50 batches
from each in a process of its own, and prints how resident memory and time per batch compare.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from ccwm.data.sampling import WindowSampler
from ccwm.data.store import EpisodeStore
from ccwm.structs import Episode

SMALL = 10_000
EPISODE = 500
SIZE = 64
MIB = 2**20


def build(directory: Path, steps: int) -> None:
    store = EpisodeStore(directory)
    random = np.random.default_rng(0)
    image = random.integers(0, 256, (EPISODE, SIZE, SIZE, 3), dtype=np.uint8)
    action = random.uniform(-1, 1, (EPISODE, 6)).astype(np.float32)
    action[0] = 0
    while store.steps < steps:
        reward = np.full(EPISODE, len(store), np.float32)
        marker = np.arange(EPISODE) == 0
        store.append(Episode(image, action, reward, marker, np.ones_like(reward), np.zeros_like(marker)))


def resident() -> int:
    """Bytes of this process in memory, file pages included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(directory: Path, draws: int) -> tuple[float, float, float]:
    """Seconds to open the store, MiB that resident memory grew by while drawing, and milliseconds per batch."""
    begin = time.perf_counter()
    store = EpisodeStore(directory)
    opened = time.perf_counter() - begin
    sampler = WindowSampler(store, batch=64, length=50, seed=0)
    sampler.draw(0)
    before = resident()
    milliseconds = []
    for update in range(1, draws + 1):
        begin = time.perf_counter()
        sampler.draw(update)
        milliseconds.append(1000 * (time.perf_counter() - begin))
    return opened, (resident() - before) / MIB, float(np.median(milliseconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=200_000, help="steps of the large store")
    parser.add_argument("--draws", type=int, default=100, help="batches drawn from each store")
    parser.add_argument("--directory", type=Path, default=None, help="where the temporary stores go")
    arguments = parser.parse_args()
    results = {}
    # A spawned process for each store, so that one's memory is not the other's.
    with (
        tempfile.TemporaryDirectory(dir=arguments.directory, prefix="replay-") as temporary,
        multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool,
    ):
        for steps in (SMALL, arguments.steps):
            directory = Path(temporary) / str(steps)
            build(directory, steps)
            opened, growth, milliseconds = results[steps] = pool.apply(measure, (directory, arguments.draws))
            print(
                f"{steps:>9,} steps: open {opened:6.2f} s   growth {growth:6.1f} MiB   {milliseconds:6.1f} ms a batch"
            )
    small, large = results[SMALL], results[arguments.steps]
    ratio = arguments.steps / SMALL
    print(f"{ratio:.0f} × the steps: {large[1] - small[1]:+.1f} MiB, {large[2] / small[2]:.2f} × the time")


if __name__ == "__main__":
    main()
