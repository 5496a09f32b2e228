"""What the benchmarks share: arguments, clocks, an agent to update, and an agent trained outside the pipeline."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from ccwm.cells import Cell
from ccwm.files import write_json
from ccwm.machine import cores, machine
from ccwm.progress import counter
from ccwm.settings.agent import AgentConfig
from ccwm.settings.schema import Settings
from ccwm.training.collect import RandomReturn, collect_random
from ccwm.training.device_check import one_device
from ccwm.training.devices import launch
from ccwm.training.history import Log, summarise, write_history
from ccwm.training.kinds import build_module
from ccwm.training.loop import Trained, train
from ccwm.training.memory import keep_freed_memory
from ccwm.training.module import CCWM
from ccwm.training.publish import publish_agent
from ccwm.training.update import JointUpdater

Result = TypeVar("Result")


class Spent(NamedTuple):
    """Seconds of the clock, and of processor time, which other work on the machine hardly changes."""

    clock: float
    processor: float

    @classmethod
    def now(cls) -> Spent:
        """Since some fixed moment."""
        return cls(time.perf_counter(), time.process_time())

    def since(self, begin: Spent) -> Spent:
        """From ``begin`` to this moment."""
        return Spent(self.clock - begin.clock, self.processor - begin.processor)


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that shows the script's docstring and knows ``--json``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    return parser


def conditions(threads: int | None) -> dict[str, object]:
    """What a measurement of speed belongs to: the machine, the commit, the time, and how busy it was just before."""
    describe = ["git", "describe", "--always", "--dirty=+"]
    described = subprocess.run(describe, capture_output=True, text=True, check=False)
    return {
        "commit": described.stdout.strip(),
        "cores": cores(),
        **machine(threads),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_of_the_last_minute": round(os.getloadavg()[0], 1),
        "niceness": os.nice(0),
    }


def append_json(path: Path, key: str, row: Mapping[str, object]) -> None:
    """Add a row to the list under ``key``, and make the file where there is none."""
    known = json.loads(path.read_text())[key] if path.exists() else []
    write_json(path, {key: [*known, row]})


def run_alone(function: Callable[..., Result], *arguments: object) -> Result:
    """Call it in a fresh process, so that its memory is its own; it may start others."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def peak_memory_mib() -> float:
    """The peak of this process alone. What `getrusage` calls its peak can be that of the process which started it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def make_updater(config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> JointUpdater:
    """An untrained agent and its optimiser on one device, with the threads and the precision of its settings."""
    keep_freed_memory()
    module = build_module(config, seed=0, observation_shape=observation_shape, actions=actions)
    assert isinstance(module, CCWM)
    return JointUpdater(launch(one_device(config.trainer)), module)


def collect(settings: Settings, cell: Cell, folder: Path, *parts: str) -> list[RandomReturn]:
    """Store the random episodes of ``train``, ``heldout`` or both in ``folder``, as stage collect does."""
    assert cell.seed is not None
    episodes = {"train": settings.collect.episodes, "heldout": settings.collect.heldout}
    wanted = {part: episodes[part] for part in parts}
    with counter("random episodes", sum(wanted.values())) as advance:
        return collect_random(cell.task, folder, parts=wanted, env=settings.env, seed=cell.seed, advance=advance)


def train_cell(
    settings: Settings, cell: Cell, *, data: Path, root: Path, log: Log = lambda metrics, env_steps: None
) -> Trained:
    """Train on the random episodes in ``data`` and publish agent and history under ``root``, as stage train does."""
    trained = train(settings.agent_config, cell, data=data / "train", work=root / "work", log=log, label=cell.title)
    publish_agent(root / cell.model, trained, cell)
    write_history(root / cell.results, trained.history, summarise(trained.history, trained.module.counters))
    return trained
