"""`ccwm doctor`: is this machine ready for the settings, and what to do where it is not."""

from __future__ import annotations

import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple, get_args

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ccwm.cells import dvc_status, entries
from ccwm.envs.gl import probe
from ccwm.envs.tasks import check_task, needs_gl
from ccwm.errors import UserError
from ccwm.machine import cores
from ccwm.progress import counter
from ccwm.settings.agent import Trainer
from ccwm.settings.loading import load_settings
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve

PARAMS, LOCK, PROJECT = Path("params.yaml"), Path("requirements.lock"), Path("pyproject.toml")
SAMPLE = "cheetah_run"
FRAME = """
import hashlib, sys
from ccwm.envs.factory import make_env
world = make_env(sys.argv[1], size=64, action_repeat=2, time_limit=100, quality=sys.argv[2])
print(hashlib.sha256(world.reset(seed=0)[0].tobytes()).hexdigest()[:16])
"""


class Finding(NamedTuple):
    """One line of the screen; a problem makes the exit code 1, a note does not."""

    what: str
    told: str
    problem: bool = False
    cure: str = ""


def doctor() -> None:
    """Check versions, rendering, devices, tracking, DVC and disk against the settings; name every cure."""
    checks: dict[str, Callable[[], Iterator[Finding]]] = {"python": python, "packages": packages, "git": git}
    try:
        settings = load_settings(PARAMS)
        for task in settings.study.tasks:
            check_task(task)
        told = [Finding("settings", f"{PARAMS}: {len(entries(settings.study))} runs")]
        checks |= {
            "rendering": lambda: rendering(settings),
            "film": film,
            "device": lambda: device(settings.trainer),
            "threads": lambda: threads(settings.trainer),
            "tracking": lambda: tracking(settings),
            "pipeline": pipeline,
            "disk": lambda: disk(settings),
        }
    except UserError as refusal:
        told = [
            Finding("settings", str(refusal), problem=True, cure="mend params.yaml; docs/settings.md has every key")
        ]
    with counter("checks", len(checks)) as advance:
        for name, check in checks.items():
            told += examined(name, check)
            advance()
    if not show(told, Console()):
        raise typer.Exit(1)


def examined(name: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What a check finds; one that fails by itself is a problem too."""
    try:
        return list(check())
    except UserError as refusal:
        reason, _, cure = str(refusal).partition("\n")
        return [Finding(name, reason, problem=True, cure=cure)]
    except Exception as error:  # whatever this machine does, the other checks go on
        return [Finding(name, f"{type(error).__name__}: {error}", problem=True, cure="docs/install.md")]


def python() -> Iterator[Finding]:
    """The interpreter."""
    right = sys.version_info[:2] == (3, 11)
    yield Finding("python", platform.python_version(), not right, "" if right else "make install PYTHON=python3.11")


def packages() -> Iterator[Finding]:
    """Installed versions against requirements.lock, and torch's against pyproject.toml."""
    wanted = dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", LOCK.read_text(), re.MULTILINE))
    wanted |= dict(re.findall(r'"(torch)==([^"]+)"', PROJECT.read_text()))
    wrong = [
        f"{name} {have or 'missing'} (lock: {want})"
        for name, want in wanted.items()
        if (have := installed(name)) is None or have.partition("+")[0] != want.partition("+")[0]
    ]
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        yield Finding("packages", ", ".join(wrong[:5]) + more, problem=True, cure="make install")
    else:
        yield Finding("packages", f"{len(wanted)} as locked; torch {installed('torch')}, mujoco {installed('mujoco')}")


def installed(name: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def git() -> Iterator[Finding]:
    """Whether runs can name their commit."""
    from ccwm.tracking.git import git_state

    commit, dirty = git_state()
    if commit == "unknown":
        yield Finding("git", "no commit; runs will not name their code", cure="git init, git commit")
    else:
        yield Finding("git", f"{commit[:12]}, sources {'changed since' if dirty == 'true' else 'unchanged'}")


def rendering(settings: Settings) -> Iterator[Finding]:
    """MuJoCo's pixels: needed or not, drawn or not, and their hash, to be compared between machines."""
    needed = [task for task in settings.study.tasks if needs_gl(task)]
    backend = os.environ.get("MUJOCO_GL", "egl")
    try:
        probe()
    except UserError as refusal:
        reason, _, cure = str(refusal).partition("\n")
        use = f"needed by {needed[0]}" if needed else "no task of params.yaml needs it"
        yield Finding("rendering", f"{reason} ({use})", problem=bool(needed), cure=cure if needed else "")
        return
    task = next((task for task in needed if not task.startswith("gym:")), SAMPLE)
    command = [sys.executable, "-c", FRAME, task, settings.render.quality]
    frame = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.strip()
    yield Finding("rendering", f"MUJOCO_GL={backend}; the first frame of {task} ({settings.render.quality}) is {frame}")


def film() -> Iterator[Finding]:
    """The encoder of the rollouts' films."""
    import imageio_ffmpeg

    path = Path(imageio_ffmpeg.get_ffmpeg_exe())
    yield Finding("film", f"ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}", not path.is_file(), "")


def device(trainer: Trainer) -> Iterator[Finding]:
    """What Lightning computes on, and which precisions work there, tried with a product."""
    import lightning as L
    import torch

    seen = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    if trainer.accelerator == "gpu" and not seen:
        cure = "trainer.accelerator: auto, or install a CUDA build of torch (docs/install.md)"
        yield Finding("device", "trainer.accelerator is gpu, and torch sees none", problem=True, cure=cure)
        return
    chosen = L.Fabric(accelerator=trainer.accelerator, devices=1).device
    works = [name for name in get_args(Trainer.model_fields["precision"].annotation) if precision_works(trainer, name)]
    listed = f"{chosen} of {', '.join(seen) or f'{cores()} cores, no GPU'}; precisions {', '.join(works)}"
    if trainer.precision not in works:
        cure = f"trainer.precision: {works[0]}" if works else "make install"
        yield Finding("device", f"{listed}, not {trainer.precision}", problem=True, cure=cure)
    elif chosen.type == "cpu" and trainer.precision.endswith("mixed"):
        yield Finding("device", f"{listed}; mixed precision is slower here", cure="trainer.precision: 32-true")
    else:
        yield Finding("device", listed)


def precision_works(trainer: Trainer, precision: str) -> bool:
    """Whether a product and its gradient can be computed so."""
    import lightning as L
    import torch

    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # with which Lightning replaces a precision that it has not
            fabric = L.Fabric(accelerator=trainer.accelerator, devices=1, precision=precision)  # type: ignore[arg-type]
        layer = torch.nn.Linear(4, 4, device=fabric.device, dtype=torch.float64 if precision == "64-true" else None)
        with fabric.autocast():
            layer(torch.ones(2, 4, device=fabric.device, dtype=layer.weight.dtype)).sum().backward()
    except Exception:  # each backend has its own way to refuse
        return False
    return True


def threads(trainer: Trainer) -> Iterator[Finding]:
    """Pinned threads against cores."""
    fits = trainer.threads <= cores()
    cure = "" if fits else f"trainer.threads: {cores()}, which is another result in its last bits"
    yield Finding("threads", f"trainer.threads is {trainer.threads}, of {cores()} cores", cure=cure)


def tracking(settings: Settings) -> Iterator[Finding]:
    """The store, reached and written to; and what could not be sent to it."""
    from ccwm.tracking.stage import WORK
    from ccwm.tracking.store import check_store

    yield Finding("tracking", check_store(settings.tracking.experiment))
    unsent = len(list((WORK / "spool").glob("*/journal.jsonl")))
    if unsent:
        yield Finding("tracking", f"{unsent} runs are kept in {WORK / 'spool'}", cure="ccwm tracking sync")


def pipeline() -> Iterator[Finding]:
    """What DVC would run, and whether it can tell."""
    from ccwm.verify.record import RESULTS, load_record, read_checkout

    changed = dvc_status(Path.cwd())
    yield Finding("pipeline", f"{len(changed)} entries to run: dvc repro" if changed else "up to date")
    runs = {name: stage.run for name, stage in read_checkout(Path.cwd()).stages.items()}
    known = load_record(RESULTS, cure="").stages if RESULTS.is_file() else {}
    if runs and runs != {name: stage.run for name, stage in known.items()}:
        yield Finding("pipeline", f"{RESULTS} does not know who made dvc.lock", cure="make record, and commit")


def disk(settings: Settings) -> Iterator[Finding]:
    """Free space against what the study will need."""
    from ccwm.cli.plan import gigabytes
    from ccwm.envs.factory import make_env
    from ccwm.plan.estimate import disk as needed
    from ccwm.plan.measure import learning_of
    from ccwm.training.loop import build_module

    env = settings.env
    first = next((task for task in settings.study.tasks if not needs_gl(task)), settings.study.tasks[0])
    world = make_env(first, size=env.size, action_repeat=env.action_repeat, time_limit=env.time_limit)
    actions = world.action_space.shape[0] if world.action_space.shape else 1
    world.close()
    weights = {}
    for variant in settings.study.variants:
        module = build_module(learning_of(settings, variant), seed=0, actions=actions)
        weights[variant] = sum(weight.numel() for weight in module.learner.parameters())
    size = needed(resolve(settings, settings.study.variants[0]), weights, actions)
    free = shutil.disk_usage(Path.cwd()).free
    told = f"{gigabytes(free)} free; the study keeps {gigabytes(size.kept)}, an agent takes {gigabytes(size.working)}"
    short = free < size.kept + size.working
    yield Finding("disk", told, short, "free some, or lower study.seeds, train.env_steps or env.size" if short else "")


def show(findings: list[Finding], console: Console) -> bool:
    """The screen; whether there is no problem."""
    table = Table("", "check", "what", box=None)
    for each in findings:
        mark = Text("✗", "bold red") if each.problem else Text("•", "yellow") if each.cure else Text("✓", "green")
        told = f"{each.told}\n→ {each.cure.strip()}" if each.cure else each.told
        table.add_row(mark, each.what, Text(told))
    console.print(table)
    problems = sum(each.problem for each in findings)
    console.print("ready" if problems == 0 else f"{problems} to mend")
    return problems == 0
