"""`ccwm plan`: stages, hours, disk and memory before anything is run, and what is already done."""

from __future__ import annotations

import logging
import os
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ccwm.cells import STAGES, Entry, entries, up_to_date
from ccwm.envs.gl import probe
from ccwm.envs.tasks import check_task, needs_gl
from ccwm.machine import cores
from ccwm.progress import counter
from ccwm.settings.loading import load_settings
from ccwm.settings.presets import preset_path
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve

if TYPE_CHECKING:  # torch takes seconds to import, which a help text need not
    from ccwm.plan.measure import Agent, World

PARAMS = Path("params.yaml")


def plan(
    preset: Annotated[str, typer.Argument(help="A preset's name; default: params.yaml as it is.")] = "",
) -> None:
    """Tell what a study will take here: runs, hours, disk, memory, and what is already done. Nothing is run."""
    path = preset_path(preset) if preset else PARAMS
    settings = load_settings(path)
    for task in settings.study.tasks:
        check_task(task)
    if any(needs_gl(task) for task in settings.study.tasks):
        probe()
    current = PARAMS.is_file() and path.read_bytes() == PARAMS.read_bytes()
    done = up_to_date(settings.study, Path.cwd()) if current else set()
    worlds, agents, start = measure(settings)
    console = Console()
    print_stages(console, settings, worlds, agents, start, done)
    print_needs(console, settings, worlds, agents)
    if not current:
        console.print(f"`ccwm preset {preset}` makes it params.yaml; nothing of it is counted as done", highlight=False)
    for name, told in resumable(settings, done).items() if current else ():
        console.print(f"{name} goes on {told}", highlight=False)


def measure(settings: Settings) -> tuple[dict[str, World], dict[str, Agent], float]:
    """Each task's world, each variant's agent in the first of them, and the start of a process."""
    from ccwm.plan.measure import learning_of, measure_agent, measure_start, measure_world

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    study = settings.study
    with counter("measuring on this machine", 1 + len(study.tasks) + len(study.variants)) as advance:
        start = measure_start()
        advance()
        worlds, episode = {}, None
        for task in study.tasks:
            worlds[task], seen = measure_world(task, settings)
            episode = episode or seen
            advance()
        agents = {}
        for variant in study.variants:
            assert episode is not None
            agents[variant] = measure_agent(learning_of(settings, variant), worlds[study.tasks[0]], episode)
            advance()
    return worlds, agents, start


def resumable(settings: Settings, done: set[Entry]) -> dict[str, str]:
    """Trainings that were begun with these settings, this code and this data."""
    from ccwm.plan.estimate import updates
    from ccwm.training.checkpoints import Checkpoints
    from ccwm.training.work_directory import work_directory

    found = {}
    for entry in entries(settings.study):
        data = Path("data") / entry.task / str(entry.seed)
        if entry.stage != "train" or entry in done or not (data / "train" / "manifest.jsonl").is_file():
            continue
        resolved = resolve(settings, entry.variant)
        work = work_directory(resolved, task=entry.task, variant=entry.variant, seed=entry.seed, data=data)
        saved = Checkpoints(work / "checkpoints").latest() if (work / "checkpoints").is_dir() else None
        if saved is not None:
            count = saved["module"]["counters"]["updates"]
            found[entry.name] = f"from update {count:,} of {updates(resolved):,}"
    return found


def print_stages(
    console: Console,
    settings: Settings,
    worlds: dict[str, World],
    agents: dict[str, Agent],
    start: float,
    done: set[Entry],
) -> None:
    """The matrix as a table, and the time that is left."""
    from ccwm.plan.estimate import seconds

    table = Table("stage", "runs", "done", "each", "left", box=None)
    costs: dict[Entry, float] = {}
    for entry in entries(settings.study):
        variant = entry.variant or settings.study.variants[0]
        world = worlds[entry.task or settings.study.tasks[0]]
        costs[entry] = seconds(resolve(settings, variant), world, agents[variant], start).get(entry.stage, 2 * start)
    for stage in STAGES:
        runs = [entry for entry in costs if entry.stage == stage]
        left = sum(costs[entry] for entry in runs if entry not in done)
        each = sum(costs[entry] for entry in runs) / len(runs)
        finished = sum(entry in done for entry in runs)
        table.add_row(stage, str(len(runs)), str(finished), duration(each), duration(left))
    console.print(table)
    total = sum(cost for entry, cost in costs.items() if entry not in done)
    console.print(f"{duration(total)} left, one run after the other", highlight=False)


def print_needs(console: Console, settings: Settings, worlds: dict[str, World], agents: dict[str, Agent]) -> None:
    """Disk, memory, and what all of it was worked out from."""
    from ccwm.plan.estimate import disk, updates

    size = disk(
        settings,
        {name: agent.parameters for name, agent in agents.items()},
        max(each.actions for each in worlds.values()),
    )
    free = shutil.disk_usage(Path.cwd()).free
    memory = max(agent.memory_mb for agent in agents.values())
    lines = [
        f"disk: {gigabytes(size.kept)} to keep, {gigabytes(size.working)} more while an agent is trained; "
        f"{gigabytes(free)} free",
        f"memory: {gigabytes(memory * 1e6)} while training",
    ]
    for name, agent in agents.items():
        whole = settings.train.batch
        how = "measured" if agent.parts == (whole,) else f"from batches of {' and '.join(map(str, agent.parts))}"
        lines.append(
            f"{name}: {agent.parameters:,} weights; {updates(resolve(settings, name)):,} updates of "
            f"{agent.update:.3g} s ({how}), {1e3 * agent.act:.3g} ms to act"
        )
    steps = ", ".join(f"{task} {1e3 * world.step:.3g} ms" for task, world in worlds.items())
    lines.append(f"a step of {settings.env.action_repeat} frames with its picture: {steps}")
    load = os.getloadavg()[0]
    busy = "; it is busy, and would be faster alone" if load > cores() + 1 else ""
    lines.append(f"measured just now, with a load of {load:.1f} on {cores()} cores{busy}")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """As a person says it: `14 s`, `12 min`, `3.5 h`, `12 days`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def gigabytes(size: float) -> str:
    """`0.3 GB`, or MB below a tenth of one."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.0f} MB"
