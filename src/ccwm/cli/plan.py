"""`ccwm plan`: stages, hours, disk and memory before anything is run, and what is already done."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from ccwm.cells import CLAIMS, PARAMS, STAGES, Cell, cells, up_to_date
from ccwm.envs.gl import probe
from ccwm.envs.tasks import check_task, needs_gl
from ccwm.errors import UserError
from ccwm.machine import cores
from ccwm.progress import counter
from ccwm.settings.loading import load_settings
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve

if TYPE_CHECKING:  # torch takes seconds to import, which a help text need not
    from ccwm.plan.measure import AgentCost, TaskCost


class Measured(NamedTuple):
    """Each task, each variant's agent in the first of them, and the start of a process."""

    tasks: dict[str, TaskCost]
    agents: dict[str, AgentCost]
    start: float


def plan(
    preset: Annotated[str, typer.Argument(help="A preset's name; default: params.yaml as it is.")] = "",
    machines: Annotated[int, typer.Option(min=1, help="Also tell the hours of a fleet of so many like this.")] = 1,
    power: Annotated[
        bool, typer.Option("--power", help="Instead: the seeds that each claim needs, from the spread seen so far.")
    ] = False,
) -> None:
    """Show what a study will take here: runs, hours, disk, memory, and what is already done. Nothing is run."""
    if power:
        Console().print(power_table(preset))
        return
    settings = load_preset(preset) if preset else load_settings(PARAMS)
    for task in settings.study.tasks:
        check_task(task)
    if any(needs_gl(task, settings.env) for task in settings.study.tasks):
        probe()
    current = not preset or (PARAMS.is_file() and load_settings(PARAMS) == settings)
    done = up_to_date(settings.study, Path.cwd()) if current else set()
    measured = measure(settings)
    console = Console()
    costs = cell_seconds(settings, measured)
    console.print(stage_table(costs, done))
    lines = [*fleet_hours(settings, costs, done, machines), *needs(settings, measured)]
    lines += resumable(settings, done) if current else ()
    if not current:
        lines.append(f"`ccwm preset {preset}` makes it params.yaml; nothing of it is counted as done")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def power_table(study: str) -> Table:
    """Seeds for 80 % power at a two-sided 5 % level by a paired t-test; of one study in evidence/, or of all."""
    from ccwm.plan.power import seeds_needed
    from ccwm.report.claims import load_claims
    from ccwm.report.sources import all_sources

    sources = all_sources(Path.cwd(), load_settings(PARAMS))
    rows = seeds_needed([of for of in sources if study in ("", of.name)], load_claims(CLAIMS))
    if not rows:
        raise UserError("no claim has two seeds yet", hint="`dvc repro` or `ccwm fleet run` makes some")
    headings = ("claim", "task", "study", "seeds", "sd", "finds", "to find", "needs")
    table = Table(*headings, box=None, caption="sd: of the differences; finds: what these seeds find with 80 % power")
    for row in rows:
        sizes = (f"{row[key]:.3g}" for key in ("sd", "found", "matters"))
        needed = "over 1,000" if row["needed"] is None else str(row["needed"])
        table.add_row(row["claim"], row["task"], row["study"], str(row["seeds"]), *sizes, needed)
    return table


def measure(settings: Settings) -> Measured:
    """Play and learn for some seconds on this machine."""
    from ccwm.plan.measure import measure_agent, measure_start, measure_task

    study = settings.study
    with counter("measuring on this machine", 1 + len(study.tasks) + len(study.variants)) as advance:
        found = Measured({}, {}, measure_start())
        advance()
        for task in study.tasks:
            found.tasks[task] = measure_task(task, settings.env)
            advance()
        for variant in study.variants:
            found.agents[variant] = measure_agent(resolve(settings, variant).agent_config, found.tasks[study.tasks[0]])
            advance()
    return found


def resumable(settings: Settings, done: set[Cell]) -> Iterator[str]:
    """Trainings that were started with these settings, this code and this data."""
    from ccwm.plan.estimate import updates
    from ccwm.training.checkpoints import Checkpoints
    from ccwm.training.work_directory import work_directory

    for cell in cells(settings.study, "train"):
        if cell in done or not (cell.data / "train" / "manifest.jsonl").is_file():
            continue
        resolved = resolve(settings, cell.variant)
        checkpoints = work_directory(resolved, cell) / "checkpoints"
        saved = Checkpoints(checkpoints).latest() if checkpoints.is_dir() else None
        if saved is not None:
            count = saved["updater"]["module"]["_extra_state"]["updates"]
            yield f"{cell} resumes from update {count:,} of {updates(resolved):,}"


def cell_seconds(settings: Settings, measured: Measured) -> dict[Cell, float]:
    """What each cell of the matrix will take."""
    from ccwm.plan.estimate import seconds

    study, start = settings.study, measured.start
    costs: dict[Cell, float] = {}
    for cell in cells(study):
        variant = cell.variant or study.variants[0]
        task, agent = measured.tasks[cell.task or study.tasks[0]], measured.agents[variant]
        costs[cell] = seconds(resolve(settings, variant), task, agent, start).get(cell.stage, 2 * start)
    return costs


def fleet_hours(settings: Settings, costs: dict[Cell, float], done: set[Cell], machines: int) -> Iterator[str]:
    """The time that is left when cells run in parallel, as many at once as there are GPUs, or cores without any."""
    import torch

    from ccwm.plan.estimate import makespan

    trainer = settings.trainer
    gpus = 0 if trainer.accelerator == "cpu" else torch.cuda.device_count()
    at_once = max((gpus if gpus else cores() // trainer.threads) // trainer.devices, 1)
    left = {cell: spent for cell, spent in costs.items() if cell not in done}
    for number in sorted({1, machines}):
        where = "this machine" if number == 1 else f"{number} machines like this one"
        slots = number * at_once
        yield f"as a fleet on {where}, {slots} cells at once: {duration(makespan(left, slots))}"


def stage_table(costs: dict[Cell, float], done: set[Cell]) -> Table:
    """The matrix as a table, with the time that is left."""
    table = Table("stage", "runs", "done", "each", "left", box=None)
    for stage in (*STAGES, "all"):
        runs = [cell for cell in costs if stage in (cell.stage, "all")]
        left = sum(costs[cell] for cell in runs if cell not in done)
        each = duration(sum(costs[cell] for cell in runs) / len(runs)) if stage != "all" else ""
        table.add_row(stage, str(len(runs)), str(len(done.intersection(runs))), each, duration(left))
    return table


def needs(settings: Settings, measured: Measured) -> Iterator[str]:
    """Disk, memory, and what all of it was worked out from."""
    from ccwm.plan.estimate import disk, updates

    tasks, agents = measured.tasks, measured.agents
    largest = max(tasks.values(), key=lambda task: task.action_size)
    size = disk(settings, {name: agent.parameters for name, agent in agents.items()}, largest)
    kept, working, free = (decimal(int(part)) for part in (*size, shutil.disk_usage(Path.cwd()).free))
    yield f"disk: {kept} to keep, {working} more to train an agent; {free} free"
    yield f"memory: {decimal(int(1e6 * max(agent.memory_mb for agent in agents.values())))} while training"
    for name, agent in agents.items():
        whole = agent.parts == (settings.train.batch,)
        how = "measured" if whole else f"from batches of {' and '.join(map(str, agent.parts))}"
        yield (
            f"{name}: {agent.parameters:,} weights; {updates(resolve(settings, name)):,} updates of "
            f"{agent.update:.3g} s ({how}), {1e3 * agent.act:.3g} ms to act"
        )
    steps = ", ".join(f"{name} {1e3 * task.step:.3g} ms" for name, task in tasks.items())
    yield f"a step of {settings.env.action_repeat} frames with its observation: {steps}"
    load = os.getloadavg()[0]
    busy = "; it is busy, and would be faster alone" if load > cores() + 1 else ""
    yield f"the table counts one run after the other; measured with a load of {load:.1f} on {cores()} cores{busy}"


def duration(seconds: float) -> str:
    """As a person says it: `14 s`, `12 min`, `3.5 h`, `12 days`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"
