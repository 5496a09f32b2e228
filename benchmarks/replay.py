"""Does sampling stay cheap as replay grows?

    python benchmarks/replay.py [--steps 1000000] [--json benchmarks/replay.json]

Builds a small and a large store of synthetic episodes of 64 × 64 pixels in a temporary directory (12 GB for 1,000,000
steps), draws 64 × 50 batches from each in a process of its own, and tells how resident memory and the time of a draw
compare. Then it makes updates of the `paper` preset on batches of the large store: the share of a draw in an update.
Both are told in seconds of the clock, and of processor time, which other work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ccwm.machine import conditions
from ccwm.errors import UserError, run_main
from ccwm.files import write_json
from ccwm.progress import counter
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.episode import Episode
from ccwm.structs import Batch

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


class Spent(NamedTuple):
    """Seconds of the clock and of processor time."""

    clock: float
    processor: float

    @classmethod
    def now(cls) -> Spent:
        """Since some fixed moment."""
        return cls(time.perf_counter(), time.process_time())

    def since(self, begin: Spent) -> Spent:
        """From then to this."""
        return Spent(self.clock - begin.clock, self.processor - begin.processor)


def median(spent: list[Spent]) -> Spent:
    """Of each, over all."""
    return Spent(*np.median(spent, axis=0).tolist())


def build(directory: Path, steps: int) -> None:
    """A store of at least so many steps; every episode has pixels of its own on disk."""
    store = EpisodeStore(directory)
    random = np.random.default_rng(0)
    image = random.integers(0, 256, (EPISODE, SIZE, SIZE, 3), dtype=np.uint8)
    action = random.uniform(-1, 1, (EPISODE, ACTIONS)).astype(np.float32)
    action[0] = 0
    episodes = -(-steps // EPISODE)
    with counter(f"episodes of {EPISODE} steps", episodes) as advance:
        for number in range(episodes):
            reward = np.full(EPISODE, number, np.float32)
            marker = np.arange(EPISODE) == 0
            store.append(Episode(image, action, reward, marker, np.ones_like(reward), np.zeros_like(marker)))
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


class Timed:
    """The batches of some updates, and what each took to draw."""

    def __init__(self, sampler: WindowSampler, updates: int) -> None:
        self.sampler, self.updates = sampler, updates
        self.spent: list[Spent] = []

    def __len__(self) -> int:
        return self.updates

    def __getitem__(self, index: int) -> Batch:
        begin = Spent.now()
        batch = self.sampler.draw(index)
        self.spent.append(Spent.now().since(begin))
        return batch


def update(directory: Path, updates: int) -> dict[str, float]:
    """Medians of a draw and of an update with the `paper` preset, in one training loop."""
    import lightning as L
    import torch
    from torch.utils.data import DataLoader

    from ccwm.settings.presets import load_preset
    from ccwm.settings.variants import resolve
    from ccwm.settings.agent import AgentConfig
    from ccwm.training.loop import build_module

    settings = resolve(load_preset("paper"), "ccwm")
    learning = Learning(*(getattr(settings, section) for section in Learning._fields))
    torch.set_num_threads(learning.trainer.threads)
    store = EpisodeStore(directory, read_only=True)
    sampler = WindowSampler(store, batch=learning.train.batch, length=learning.train.length, seed=0)
    batches = Timed(sampler, updates)
    spent: list[Spent] = []

    class Clock(L.Callback):
        """What each update took, the draw left out."""

        def on_train_batch_start(self, *_: object) -> None:
            self.begin = Spent.now()

        def on_train_batch_end(self, *_: object) -> None:
            spent.append(Spent.now().since(self.begin))
            advance()

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    with counter("updates at paper size", updates) as advance:
        trainer = L.Trainer(
            accelerator="cpu",
            max_epochs=1,
            callbacks=[Clock()],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(build_module(learning, seed=0, actions=ACTIONS), DataLoader(batches, batch_size=None))  # type: ignore[arg-type]
    draw, own = median(batches.spent), median(spent)
    return {
        "updates": updates,
        "seconds_a_draw": draw.clock,
        "seconds_an_update": own.clock,
        "share": draw.clock / (draw.clock + own.clock),
        "processor_seconds_a_draw": draw.processor,
        "processor_seconds_an_update": own.processor,
        "processor_share": draw.processor / (draw.processor + own.processor),
    }


def alone(function: Any, *arguments: Any) -> Any:
    """Call it in a fresh process, so that its memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of the large store")
    parser.add_argument("--draws", type=int, default=100, help="batches drawn from each store")
    parser.add_argument("--updates", type=int, default=2, help="updates at paper size")
    parser.add_argument("--directory", type=Path, default=None, help="where the temporary stores go")
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    given = parser.parse_args()
    needed = 1.02 * (SMALL + given.steps) * SIZE * SIZE * 3
    free = shutil.disk_usage(given.directory or tempfile.gettempdir()).free
    if free < needed:
        raise UserError(
            f"{needed / 1e9:.1f} GB of disk are needed, {free / 1e9:.1f} are free: lower --steps or move --directory"
        )
    facts = conditions(1)
    with tempfile.TemporaryDirectory(dir=given.directory, prefix="replay-") as temporary:
        results = []
        for steps in (SMALL, given.steps):
            directory = Path(temporary) / str(steps)
            build(directory, steps)
            found = Sampling(*alone(sample, directory, steps, given.draws))
            results.append(found)
            batch, processor = found.milliseconds_a_batch, found.processor_milliseconds_a_batch
            print(
                f"{steps:>9,} steps: open {found.seconds_to_open:6.2f} s   resident {found.resident_mib:6.1f} MiB   "
                f"{batch:6.1f} ms a batch ({processor:.1f} of the processor)"
            )
        paper = alone(update, directory, given.updates)
    growth = results[1].resident_mib - results[0].resident_mib
    held = verdict(growth < MOST_MIB)
    print(f"{given.steps / SMALL:.0f} × the steps: {growth:+.1f} MiB resident ({held}: < {MOST_MIB})")
    for name, unit in (("", "s"), ("processor_", "s of the processor")):
        draw, own, share = (paper[f"{name}{key}"] for key in ("seconds_a_draw", "seconds_an_update", "share"))
        held = verdict(share < MOST_SHARE)
        told = f"{share:.2%} ({held}: < {MOST_SHARE:.0%})"
        print(f"paper size: a draw {draw:.3f} {unit}, an update {own:.2f} {unit}: {told}")
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
