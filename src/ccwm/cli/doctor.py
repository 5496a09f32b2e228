"""`ccwm doctor`: is this machine ready for the settings, and what to do where it is not."""

from __future__ import annotations

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

from ccwm.cells import PARAMS, WORK, cells, dvc_status
from ccwm.envs.gl import probe
from ccwm.envs.tasks import check_task, needs_gl
from ccwm.errors import UserError
from ccwm.machine import cores
from ccwm.progress import counter
from ccwm.settings.agent import Trainer
from ccwm.settings.loading import load_settings
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve

LOCK, PROJECT = Path("requirements.lock"), Path("pyproject.toml")
SAMPLE = "cheetah_run"
FRAME = """
import hashlib, sys
from ccwm.envs.factory import make_env
from ccwm.settings.agent import Env
env = make_env(sys.argv[1], Env.model_validate_json(sys.argv[2]))
env.reset(seed=0)
print(hashlib.sha256(env.render().tobytes()).hexdigest()[:16])
"""


class Finding(NamedTuple):
    """One line of the screen; a problem makes the exit code 1, a note does not."""

    what: str
    told: str
    problem: bool = False
    hint: str = ""


def doctor() -> None:
    """Check versions, rendering, devices, tracking, DVC and disk against the settings; every problem has a hint."""
    checks: dict[str, Callable[[], Iterator[Finding]]] = {"python": python, "packages": packages, "git": git}
    try:
        settings = load_settings(PARAMS)
        for task in settings.study.tasks:
            check_task(task)
        found = [Finding("settings", f"{PARAMS}: {len(cells(settings.study))} runs")]
        checks |= {
            "rendering": lambda: rendering(settings),
            "video": video,
            "device": lambda: device(settings.trainer),
            "threads": lambda: threads(settings.trainer),
            "tracking": lambda: tracking(settings),
            "pipeline": pipeline,
            "disk": lambda: disk(settings),
        }
    except UserError as error:
        hint = error.hint or "edit params.yaml; docs/settings.md has every key"
        found = [Finding("settings", error.message, problem=True, hint=hint)]
    with counter("checks", len(checks)) as advance:
        for name, check in checks.items():
            found += examined(name, check)
            advance()
    if not show(found, Console()):
        raise typer.Exit(1)


def examined(name: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What a check finds; one that fails by itself is a problem too."""
    try:
        return list(check())
    except UserError as error:
        return [Finding(name, error.message, problem=True, hint=error.hint)]
    except Exception as error:  # whatever this machine does, the other checks follow
        return [Finding(name, f"{type(error).__name__}: {error}", problem=True, hint="docs/install.md")]


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
        yield Finding("packages", ", ".join(wrong[:5]) + more, problem=True, hint="make install")
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
        yield Finding("git", "no commit; runs will not name their code", hint="git init, git commit")
    else:
        yield Finding("git", f"{commit[:12]}, sources {'changed since' if dirty == 'true' else 'unchanged'}")


def rendering(settings: Settings) -> Iterator[Finding]:
    """MuJoCo's pixels: needed or not, rendered or not, and their hash, to be compared between machines."""
    needed = [task for task in settings.study.tasks if needs_gl(task)]
    try:
        probe()
    except UserError as error:
        use = f"needed by {needed[0]}" if needed else "no task of params.yaml needs it"
        yield Finding("rendering", f"{error.message} ({use})", bool(needed), error.hint if needed else "")
        return
    task = next((task for task in needed if not task.startswith("gym:")), SAMPLE)
    command = [sys.executable, "-c", FRAME, task, settings.env.model_dump_json()]
    frame = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.strip()
    backend = os.environ.get("MUJOCO_GL", "egl")
    yield Finding("rendering", f"MUJOCO_GL={backend}; the first frame of {task} is {frame}")


def video() -> Iterator[Finding]:
    """The encoder of the rollouts' videos."""
    import imageio_ffmpeg

    path = Path(imageio_ffmpeg.get_ffmpeg_exe())
    missing = not path.is_file()
    hint = "make install" if missing else ""
    yield Finding("video", f"ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}", missing, hint)


def device(trainer: Trainer) -> Iterator[Finding]:
    """What Fabric computes on, and which precisions work there, tried with a product."""
    import lightning as L
    import torch

    seen = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    if trainer.accelerator == "gpu" and not seen:
        hint = "trainer.accelerator: auto, or install a CUDA build of torch (docs/install.md)"
        yield Finding("device", "trainer.accelerator is gpu, and torch sees none", problem=True, hint=hint)
        return
    chosen = L.Fabric(accelerator=trainer.accelerator, devices=1).device
    works = [name for name in get_args(Trainer.model_fields["precision"].annotation) if precision_works(trainer, name)]
    listed = f"{chosen} of {', '.join(seen) or f'{cores()} cores, no GPU'}; precisions {', '.join(works)}"
    if trainer.precision not in works:
        hint = f"trainer.precision: {works[0]}" if works else "make install"
        yield Finding("device", f"{listed}, not {trainer.precision}", problem=True, hint=hint)
    elif chosen.type == "cpu" and trainer.precision.endswith("mixed"):
        yield Finding("device", f"{listed}; mixed precision is slower here", hint="trainer.precision: 32-true")
    else:
        yield Finding("device", listed)


def precision_works(trainer: Trainer, precision: str) -> bool:
    """Whether a product and its gradient can be computed so."""
    import lightning as L
    import torch

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
    hint = "" if fits else f"trainer.threads: {cores()}, which is another result in its last bits"
    yield Finding("threads", f"trainer.threads is {trainer.threads}, of {cores()} cores", hint=hint)


def tracking(settings: Settings) -> Iterator[Finding]:
    """The store, reached and written to; and what could not be sent to it."""
    from ccwm.tracking.store import check_store

    yield Finding("tracking", check_store(settings.tracking.experiment))
    unsent = len(list((WORK / "spool").glob("*/journal.jsonl")))
    if unsent:
        yield Finding("tracking", f"{unsent} runs are kept in {WORK / 'spool'}", hint="ccwm tracking sync")


def pipeline() -> Iterator[Finding]:
    """What DVC would run, and whether the record of who made the results is current."""
    from ccwm.verify.record import RESULTS, load_record, read_checkout

    changed = dvc_status(Path.cwd())
    yield Finding("pipeline", f"{len(changed)} cells to run: dvc repro" if changed else "up to date")
    hint = "make record, and commit"
    made = {name: stage.files for name, stage in read_checkout(Path.cwd()).stages.items()}
    known = load_record(RESULTS, hint=hint).stages if RESULTS.is_file() else {}
    if made and made != {name: stage.files for name, stage in known.items()}:
        yield Finding("pipeline", f"{RESULTS} does not know who made dvc.lock", hint=hint)


def disk(settings: Settings) -> Iterator[Finding]:
    """Free space against what the study will need."""
    from ccwm.cli.plan import gigabytes
    from ccwm.plan.estimate import disk as needed
    from ccwm.plan.measure import count_weights, measure_task

    study = settings.study
    first = next((task for task in study.tasks if not needs_gl(task)), study.tasks[0])
    task = measure_task(first, settings.env, seconds=0)
    weights = {variant: count_weights(resolve(settings, variant).agent, task) for variant in study.variants}
    size = needed(resolve(settings, study.variants[0]), weights, task)
    free = shutil.disk_usage(Path.cwd()).free
    told = f"{gigabytes(free)} free; the study keeps {gigabytes(size.kept)}, an agent takes {gigabytes(size.working)}"
    short = free < size.kept + size.working
    yield Finding("disk", told, short, "free some, or lower study.seeds, train.env_steps or env.size" if short else "")


def show(findings: list[Finding], console: Console) -> bool:
    """The screen; whether there is no problem."""
    table = Table("", "check", "what", box=None)
    for each in findings:
        mark = Text("✗", "bold red") if each.problem else Text("•", "yellow") if each.hint else Text("✓", "green")
        told = f"{each.told}\n→ {each.hint.strip()}" if each.hint else each.told
        table.add_row(mark, each.what, Text(told))
    console.print(table)
    problems = sum(each.problem for each in findings)
    console.print(f"{problems} to mend" if problems else "ready")
    return problems == 0
