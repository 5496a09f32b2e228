"""How fast is an update?  python benchmarks/update.py [--json benchmarks/update.json]

In one run, for the quick and the paper's sizes and those of a published measurement: updates a second of Dreamer and
of CCWM, what retracing adds, how much of the machine's best matrix product is reached, and the peak of memory. Dreamer
and CCWM take turns, so that a busy machine slows both; times are medians, and the peak is measured beside each of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

from ccwm.agents.learner import Losses
from ccwm.agents.noise import Noise
from ccwm.files import write_json
from ccwm.machine import conditions
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.structs import Batch
from ccwm.training.loop import build_module
from ccwm.training.memory import keep_freed_memory
from ccwm.training.module import CCWM

ACTIONS = 6
VARIANTS = ("dreamer", "ccwm")
PUBLISHED = 17.8
"""Seconds an update of SheepRL's Dreamer v1, without retracing, at the sizes of ``published`` on two cores; quoted."""


class Case(NamedTuple):
    """Sizes to measure, from a preset with some overrides."""

    name: str
    preset: str
    batch: int | None = None
    length: int | None = None


CASES = (Case("quick", "quick"), Case("published", "paper", batch=50, length=50), Case("paper", "paper"))


def settings_of(case: Case, variant: str) -> Settings:
    settings = resolve(load_preset(case.preset), variant)
    given = {"batch": case.batch, "length": case.length}
    train = settings.train.model_copy(update={name: value for name, value in given.items() if value})
    return settings.model_copy(update={"train": train})


def prepare(settings: Settings, change: Callable[[CCWM], None] = lambda _: None) -> Callable[[], object]:
    """An update of a fresh agent on random pixels, to be called again and again; ``change`` is done to it first."""
    learning = Learning(*(getattr(settings, section) for section in Learning._fields))
    module = build_module(learning, seed=0, actions=ACTIONS)
    change(module)
    batch = random_batch(settings.train.length, settings.train.batch, settings.env.size)
    noise: Noise = module.learner.noise(0, 0, batch)
    return lambda: update(module, batch, noise)


def update(module: CCWM, batch: Batch, noise: Noise) -> Losses:
    """Losses, their gradients and the steps of all optimisers, as in a training step."""
    losses: Losses = module.learner(batch, noise, 0)
    for part, loss in losses.parts.items():
        module.parts_optimisers[part].zero_grad()
        torch.autograd.backward(loss, inputs=module.groups[part], retain_graph=True)
        torch.nn.utils.clip_grad_norm_(module.groups[part], module.clip)
    for optimiser in module.parts_optimisers.values():
        optimiser.step()
    return losses


def random_batch(length: int, batch: int, size: int) -> Batch:
    shape = (length, batch)
    return Batch(
        image=torch.randint(0, 256, (*shape, 3, size, size), dtype=torch.uint8),
        action=2 * torch.rand(*shape, ACTIONS) - 1,
        reward=torch.rand(shape),
        is_first=torch.zeros(shape, dtype=torch.bool),
        continues=torch.ones(shape),
        irreversible=torch.zeros(shape, dtype=torch.bool),
        position=torch.arange(length).unsqueeze(1).expand(shape),
        episode_length=torch.full(shape, 500),
    )


def seconds_of(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def matmul_peak(size: int = 2048) -> float:
    """GFLOP/s of a large matrix product with the threads in use."""
    left = torch.randn(size, size)
    return max(2 * size**3 / seconds_of(lambda: left @ left) / 1e9 for _ in range(3))


def peak_memory(case: Case, variant: str, threads: int) -> float:
    """MiB of a process that makes two updates and nothing else."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_memory_of, (case, variant, threads))


def _memory_of(case: Case, variant: str, threads: int) -> float:
    torch.set_num_threads(threads)
    keep_freed_memory()
    step = prepare(settings_of(case, variant))
    step()
    step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(case: Case, *, threads: int, rounds: int) -> list[dict[str, Any]]:
    """A row for each variant."""
    steps = {variant: prepare(settings_of(case, variant)) for variant in VARIANTS}
    work = {}
    for variant, step in steps.items():
        with FlopCounterMode(display=False) as counter:
            step()
        work[variant] = counter.get_total_flops() / 1e9
    times: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    peaks = []
    for _ in range(rounds):
        peaks.append(matmul_peak())
        for variant, step in steps.items():
            times[variant].append(seconds_of(step))
    seconds = {variant: statistics.median(times[variant]) for variant in VARIANTS}
    overheads = [after / before - 1 for before, after in zip(times["dreamer"], times["ccwm"], strict=True)]
    peak = statistics.median(peaks)
    return [
        {
            "sizes": case.name,
            "variant": variant,
            "threads": threads,
            "seconds": seconds[variant],
            "updates_per_second": 1 / seconds[variant],
            "gflop": work[variant],
            "gflop_per_second": work[variant] / seconds[variant],
            "matmul_peak_gflop_per_second": peak,
            "utilisation": work[variant] / seconds[variant] / peak,
            "retracing_adds": statistics.median(overheads) if variant == "ccwm" else None,
            "times_faster_than_published": PUBLISHED / seconds[variant] if case.name == "published" else None,
            "peak_memory_mib": peak_memory(case, variant, threads),
        }
        for variant in VARIANTS
    ]


def table(rows: list[dict[str, Any]]) -> Table:
    shown = Table("sizes", "variant", "s/update", "updates/s", "retracing adds", "GFLOP/s", "of matmul peak", "MiB",
                  f"× SheepRL ({PUBLISHED} s)")  # fmt: skip
    for row in rows:
        adds, faster = row["retracing_adds"], row["times_faster_than_published"]
        shown.add_row(
            row["sizes"], row["variant"], f"{row['seconds']:.3f}", f"{row['updates_per_second']:.2f}",
            "" if adds is None else f"{adds:.0%}", f"{row['gflop_per_second']:.0f}", f"{row['utilisation']:.0%}",
            f"{row['peak_memory_mib']:.0f}", "" if faster is None else f"{faster:.2f}",
        )  # fmt: skip
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.name for case in CASES]
    parser.add_argument("--sizes", nargs="*", choices=names, default=names, help="default: all")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="default: all cores")
    parser.add_argument("--rounds", type=int, help="updates of each variant; default: 20 for quick, 3 for the others")
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed_memory()
    rows = []
    for case in CASES:
        if case.name in given.sizes:
            rounds = given.rounds or (20 if case.name == "quick" else 3)
            rows += measure(case, threads=given.threads, rounds=rounds)
            Console(width=112).print(table(rows))
    if given.json:
        write_json(given.json, {"machine": conditions(1), "quoted": {"sheeprl": PUBLISHED}, "updates": rows})


if __name__ == "__main__":
    main()
