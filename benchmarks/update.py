"""How fast is an update?  python benchmarks/update.py [--json benchmarks/update.json]

In one run, for the sizes of `quick` (states), of `maze` and of `paper` (pixels), and for those of a published
measurement: updates a second of Dreamer and of CCWM, what retracing adds, how much of the machine's best matrix product
is reached, and the peak of memory. Dreamer and CCWM take turns, so that a busy machine slows both; times are medians,
and the peak is measured beside each of them. With `--sheeprl PYTHON`, the Python of an environment in which SheepRL is
installed (`benchmarks/peer.py` says how), its Dreamer v1 takes turns with them at the published sizes.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, NamedTuple

import torch
from common import conditions, make_parser, make_updater, peak_memory_mib, run_alone
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
PEER = "sheeprl"


class Case(NamedTuple):
    """Sizes to measure, from a preset with some overrides."""

    name: str
    preset: str
    rounds: int
    batch: int | None = None
    length: int | None = None
    threads: int | None = None
    """Where the preset trains with so many; else all cores."""

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
        Case("quick", "quick", rounds=20, threads=1),
        Case("maze", "maze", rounds=20),
        Case("published", "paper", rounds=3, batch=50, length=50),
        Case("paper", "paper", rounds=3),
    )
}


class Work(TorchDispatchMode):
    """Counts floating-point operations. Torch's own counter also follows modules, and cannot within `autograd.grad`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
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
    return peak_memory_mib()


class Peer:
    """SheepRL's Dreamer v1 in a process of its own environment, which makes an update whenever it is asked to."""

    def __init__(self, python: Path, threads: int) -> None:
        command = [str(python), str(Path(__file__).with_name("peer.py")), str(threads)]
        self.process = Popen(command, stdin=PIPE, stdout=PIPE, text=True)
        self.versions: dict[str, str] = self._read()
        self.step()
        self.peak_memory_mib = self.step()["peak_memory_mib"]

    def step(self) -> dict[str, float]:
        """Seconds of an update, and the peak so far."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found: dict[str, float] = self._read()
        return found

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def measure(case: Case, *, threads: int, rounds: int, peer: Peer | None) -> list[dict[str, Any]]:
    """A row for each variant, and one for the peer where there is one."""
    steps = {variant: prepare(case.config(variant, threads=threads)) for variant in VARIANTS}
    work = {}
    for variant, step in steps.items():
        with Work() as counter:
            step()
        work[variant] = counter.operations / 1e9
    times: dict[str, list[float]] = {name: [] for name in (*VARIANTS, PEER)}
    peaks = []
    for _ in range(rounds):
        peaks.append(matmul_peak())
        for variant, step in steps.items():
            times[variant].append(seconds_of(step))
        times[PEER] += [peer.step()["seconds"]] if peer else []
    seconds = {name: statistics.median(measured) for name, measured in times.items() if measured}
    overheads = [after / before - 1 for before, after in zip(times["dreamer"], times["ccwm"], strict=True)]
    peak = statistics.median(peaks)
    rows = [
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
            "times_faster_than_sheeprl": seconds[PEER] / seconds[variant] if peer else None,
            "peak_memory_mib": run_alone(peak_memory, case, variant, threads),
        }
        for variant in VARIANTS
    ]
    if peer:
        row = {"seconds": seconds[PEER], "updates_per_second": 1 / seconds[PEER]}
        rows.append({"sizes": case.name, "variant": PEER, "threads": threads, **row,
                     "peak_memory_mib": peer.peak_memory_mib})  # fmt: skip
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    shown = Table("sizes", "variant", "s/update", "updates/s", "retracing adds", "GFLOP/s", "of matmul peak", "MiB",
                  "× SheepRL")  # fmt: skip
    formats = {"retracing_adds": ".0%", "gflop_per_second": ".0f", "utilisation": ".0%", "peak_memory_mib": ".0f",
               "times_faster_than_sheeprl": ".2f"}  # fmt: skip
    for row in rows:
        values = (format(row[key], how) if row.get(key) is not None else "" for key, how in formats.items())
        shown.add_row(
            row["sizes"], row["variant"], f"{row['seconds']:.3f}", f"{row['updates_per_second']:.2f}", *values
        )
    return shown


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", nargs="*", choices=CASES, default=list(CASES), help="default: all")
    parser.add_argument("--threads", type=int, help="default: 1 for quick, as it trains; else all cores")
    parser.add_argument("--rounds", type=int, help="updates of each variant; default: 20 for quick and maze, else 3")
    parser.add_argument("--sheeprl", type=Path, metavar="PYTHON", help="measure SheepRL in turn, with its own Python")
    given = parser.parse_args()
    facts = conditions(given.threads)
    cores = torch.get_num_threads()
    rows: list[dict[str, Any]] = []
    for case in (CASES[name] for name in given.sizes):
        threads = given.threads or case.threads or cores
        peer = Peer(given.sheeprl, threads) if given.sheeprl and case.name == "published" else None
        rows += measure(case, threads=threads, rounds=given.rounds or case.rounds, peer=peer)
        if peer:
            facts |= {f"peer's {name}": version for name, version in peer.versions.items()}
            peer.close()
        Console(width=112).print(table(rows))
    if given.json:
        write_json(given.json, {"machine": facts, "updates": rows})


if __name__ == "__main__":
    main()
