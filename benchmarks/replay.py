"""Does sampling stay cheap as replay grows?

    python benchmarks/replay.py [--steps 1000000] [--json benchmarks/replay.json]

Builds a small and a large store of synthetic episodes of 64 × 64 pixels in a temporary directory (12 GB for 1,000,000
steps), draws 64 × 50 batches from each in a process of its own, and compares resident memory and the time of a draw.
Then it makes updates of the `paper` preset on batches of the large store: the share of a draw in an update. Both are
given in seconds of the clock, and of processor time, which other work on the machine hardly changes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import Spent, conditions, make_parser, make_updater, run_alone

from ccwm.episode import Episode
from ccwm.errors import UserError, run_main
from ccwm.files import write_json
from ccwm.progress import counter
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.settings.presets import load_preset
from ccwm.settings.variants import resolve

SMALL = 10_000
EPISODE = 500
SIZE = 64
ACTIONS = 6
MIB = 2**20
MOST_MIB = 300
"""What resident memory may grow by from the small store to 1,000,000 steps."""
MOST_SHARE = 0.02
"""What a draw may take of an update at the paper's size."""


class Sampling(NamedTuple):
    """What drawing from one store took."""

    steps: int
    seconds_to_open: float
    resident_mib: float  # at the end, of the whole process
    milliseconds_a_batch: float
    processor_milliseconds_a_batch: float


def median(spent: list[Spent]) -> Spent:
    """Of each, over all."""
    return Spent(*np.median(spent, axis=0).tolist())


def build(directory: Path, steps: int) -> None:
    """A store of at least so many steps; every episode has pixels of its own on disk."""
    store = EpisodeStore(directory)
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (EPISODE, SIZE, SIZE, 3), dtype=np.uint8)
    action = random.uniform(-1, 1, (EPISODE, ACTIONS)).astype(np.float32)
    action[0] = 0
    episodes = -(-steps // EPISODE)
    with counter(f"episodes of {EPISODE} steps", episodes) as advance:
        for number in range(episodes):
            reward = np.full(EPISODE, number, np.float32)
            marker = np.arange(EPISODE) == 0
            store.append(Episode(pixels, action, reward, marker, np.ones_like(reward), np.zeros_like(marker)))
            advance()


def resident() -> float:
    """MiB of this process in memory, file pages included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def sample(directory: Path, steps: int, draws: int) -> Sampling:
    """Open a store and draw."""
    begin = time.perf_counter()
    store = EpisodeStore(directory, read_only=True)
    opened = time.perf_counter() - begin
    sampler = WindowSampler(store, batch=64, length=50, seed=0)
    spent = []
    for update in range(draws):
        start = Spent.now()
        sampler.draw(update)
        spent.append(Spent.now().since(start))
    clock, processor = median(spent)
    return Sampling(steps, opened, resident(), 1000 * clock, 1000 * processor)


def update(directory: Path, updates: int) -> dict[str, float]:
    """Medians of a draw and of an update with the `paper` preset, in turns as training makes them."""
    config = resolve(load_preset("paper"), "ccwm").agent_config
    updater = make_updater(config, observation_shape=(SIZE, SIZE, 3), actions=ACTIONS)
    store = EpisodeStore(directory, read_only=True)
    sampler = WindowSampler(store, batch=config.train.batch, length=config.train.length, seed=0)
    drawing, updating = [], []
    with counter("updates at paper size", updates) as advance:
        for number in range(updates):
            begin = Spent.now()
            batch = sampler.draw(number)
            drawn = Spent.now()
            updater.step(batch)
            updater.averages()  # waits for the device
            drawing.append(drawn.since(begin))
            updating.append(Spent.now().since(drawn))
            advance()
    draw, own = median(drawing), median(updating)
    return {
        "updates": updates,
        "seconds_a_draw": draw.clock,
        "seconds_an_update": own.clock,
        "share": draw.clock / (draw.clock + own.clock),
        "processor_seconds_a_draw": draw.processor,
        "processor_seconds_an_update": own.processor,
        "processor_share": draw.processor / (draw.processor + own.processor),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of the large store")
    parser.add_argument("--draws", type=int, default=100, help="batches drawn from each store")
    parser.add_argument("--updates", type=int, default=2, help="updates at paper size")
    parser.add_argument("--directory", type=Path, default=None, help="where the temporary stores go")
    given = parser.parse_args()
    needed = 1.02 * (SMALL + given.steps) * SIZE * SIZE * 3
    free = shutil.disk_usage(given.directory or tempfile.gettempdir()).free
    if free < needed:
        raise UserError(
            f"{needed / 1e9:.1f} GB of disk are needed, {free / 1e9:.1f} are free",
            hint="lower --steps or move --directory",
        )
    facts = conditions(resolve(load_preset("paper"), "ccwm").trainer.threads)
    with tempfile.TemporaryDirectory(dir=given.directory, prefix="replay-") as temporary:
        results = []
        for steps in (SMALL, given.steps):
            directory = Path(temporary) / str(steps)
            build(directory, steps)
            found = run_alone(sample, directory, steps, given.draws)
            results.append(found)
            batch, processor = found.milliseconds_a_batch, found.processor_milliseconds_a_batch
            print(
                f"{steps:>9,} steps: open {found.seconds_to_open:6.2f} s   resident {found.resident_mib:6.1f} MiB   "
                f"{batch:6.1f} ms a batch ({processor:.1f} of the processor)"
            )
        paper = run_alone(update, directory, given.updates)
    growth = results[1].resident_mib - results[0].resident_mib
    held = verdict(growth < MOST_MIB)
    print(f"{given.steps / SMALL:.0f} × the steps: {growth:+.1f} MiB resident ({held}: < {MOST_MIB})")
    for name, unit in (("", "s"), ("processor_", "s of the processor")):
        draw, own, share = (paper[f"{name}{key}"] for key in ("seconds_a_draw", "seconds_an_update", "share"))
        held = verdict(share < MOST_SHARE)
        print(
            f"paper size: a draw {draw:.3f} {unit}, an update {own:.2f} {unit}: "
            f"{share:.2%} ({held}: < {MOST_SHARE:.0%})"
        )
    if given.json:
        write_json(
            given.json,
            {
                "machine": facts,
                "sampling": [found._asdict() for found in results],
                "resident_growth_mib": round(growth, 1),
                "paper": paper,
            },
        )


def verdict(held: bool) -> str:
    return "holds" if held else "does NOT hold"


if __name__ == "__main__":
    run_main(main)
