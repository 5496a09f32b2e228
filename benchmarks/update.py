"""How fast is an update?  python benchmarks/update.py [--json benchmarks/update.json]

In one run, for the sizes of `quick` (states), of `maze` and of `paper` (pixels), and for those of a published
measurement: updates a second of Dreamer and of CCWM, what retracing adds, how much of the machine's best matrix product
is reached, and the peak of memory. Dreamer and CCWM take turns, so that a busy machine slows both; times are medians,
and the peak is measured beside each of them.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from common import conditions, make_parser, make_updater, run_alone
from rich.console import Console
from rich.table import Table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from ccwm.files import write_json
from ccwm.plan.measure import TaskCost, random_batch
from ccwm.settings.agent import AgentConfig
from ccwm.settings.presets import load_preset
from ccwm.settings.variants import resolve
from ccwm.training.update import JointUpdater

STATE, ACTIONS = 24, 6  # of walker_walk
VARIANTS = ("dreamer", "ccwm")
PUBLISHED = 17.8
"""Seconds an update of SheepRL's Dreamer v1, without retracing, at the sizes of ``published`` on two cores; quoted."""


class Case(NamedTuple):
    """Sizes to measure, from a preset with some overrides."""

    name: str
    preset: str
    rounds: int
    batch: int | None = None
    length: int | None = None

    def config(self, variant: str, *, threads: int) -> AgentConfig:
        """What an agent of these sizes is trained with."""
        config = resolve(load_preset(self.preset), variant).agent_config
        given = {"batch": self.batch, "length": self.length}
        train = config.train.model_copy(update={name: value for name, value in given.items() if value})
        trainer = config.trainer.model_copy(update={"threads": threads})
        return config.model_copy(update={"train": train, "trainer": trainer})


CASES = {
    case.name: case
    for case in (
        Case("quick", "quick", rounds=20),
        Case("maze", "maze", rounds=20),
        Case("published", "paper", rounds=3, batch=50, length=50),
        Case("paper", "paper", rounds=3),
    )
}


class Work(TorchDispatchMode):
    """Counts floating-point operations. Torch's own counter also follows modules, and cannot within `autograd.grad`."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation, and add what its kind costs at these shapes."""
        made = func(*args, **(kwargs or {}))
        if (cost := flop_registry.get(func.overloadpacket)) is not None:
            self.operations += cost(*args, **(kwargs or {}), out_val=made)
        return made


def prepare(config: AgentConfig, change: Callable[[JointUpdater], None] = lambda updater: None) -> Callable[[], object]:
    """An update of an untrained agent, changed by ``change``, on random observations; to be called again and again."""
    pixels = config.env.observation == "pixels"
    shape = (config.env.size, config.env.size, 3) if pixels else (STATE,)
    updater = make_updater(config, observation_shape=shape, actions=ACTIONS)
    change(updater)
    task = TaskCost(shape, observation_bytes=1 if pixels else 4, action_size=ACTIONS, step=0.0, reset=0.0)
    batch = random_batch(config.train.length, config.train.batch, task)

    def step() -> None:
        updater.step(batch)
        updater.averages()  # waits for the device

    return step


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
    step = prepare(case.config(variant, threads=threads))
    step()
    step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(case: Case, *, threads: int, rounds: int) -> list[dict[str, Any]]:
    """A row for each variant."""
    steps = {variant: prepare(case.config(variant, threads=threads)) for variant in VARIANTS}
    work = {}
    for variant, step in steps.items():
        with Work() as counter:
            step()
        work[variant] = counter.operations / 1e9
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
            "peak_memory_mib": run_alone(peak_memory, case, variant, threads),
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
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", nargs="*", choices=CASES, default=list(CASES), help="default: all")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="default: all cores")
    parser.add_argument("--rounds", type=int, help="updates of each variant; default: 20 for quick and maze, else 3")
    given = parser.parse_args()
    facts = conditions(given.threads)
    rows = []
    for case in (CASES[name] for name in given.sizes):
        rows += measure(case, threads=given.threads, rounds=given.rounds or case.rounds)
        Console(width=112).print(table(rows))
    if given.json:
        write_json(given.json, {"machine": facts, "quoted": {"sheeprl": PUBLISHED}, "updates": rows})


if __name__ == "__main__":
    main()
