"""`ccwm doctor`: is this machine ready for the settings, and what to do where it is not."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple, get_args

import typer
from rich.console import Console
from rich.filesize import decimal
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


class Finding(NamedTuple):
    """What a check found; a problem makes the exit code 1, a hint alone does not."""

    message: str
    hint: str = ""
    problem: bool = False


def doctor() -> None:
    """Check versions, rendering, devices, tracking, DVC and disk against the settings; every problem has a hint."""
    machine = (python, packages, git, video, params)
    study = (rendering, device, threads, tracking, pipeline, disk)
    with counter("checks", len(machine) + len(study)) as advance:
        found = {}
        for check in machine:
            found[check.__name__] = examined(check)
            advance()
        for each in () if found["params"].problem else study:
            found[each.__name__] = examined(each, load_settings(PARAMS))
            advance()
    if not show(found, Console()):
        raise typer.Exit(1)


def examined(check: Callable[..., Finding], *arguments: Settings) -> Finding:
    """What a check finds; what it raises is a problem."""
    try:
        return check(*arguments)
    except UserError as error:
        return Finding(error.message, error.hint or "docs/settings.md has every key of params.yaml", problem=True)
    except Exception as error:  # no failure of this machine may keep the other checks from running
        return Finding(f"{type(error).__name__}: {error}", "docs/install.md", problem=True)


def python() -> Finding:
    """The interpreter."""
    if sys.version_info[:2] != (3, 11):
        raise UserError(platform.python_version(), hint="make install PYTHON=python3.11")
    return Finding(platform.python_version())


def packages() -> Finding:
    """Installed versions against requirements.lock, and torch's against pyproject.toml."""
    pinned = LOCK.read_text() + PROJECT.read_text()
    wanted = dict(re.findall(r'^ *"?([\w.-]+)==([^\s;\\"]+)', pinned, re.MULTILINE))
    have = {re.sub(r"[-_.]+", "-", each.name or "").lower(): each.version for each in distributions()}
    wrong = [
        f"{name} {have.get(name, 'missing')} (lock: {want})"
        for name, want in wanted.items()
        if have.get(name, "").partition("+")[0] != want.partition("+")[0]
    ]
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise UserError(", ".join(wrong[:5]) + more, hint="make install")
    return Finding(f"{len(wanted)} as locked; torch {have['torch']}, mujoco {have['mujoco']}")


def git() -> Finding:
    """Whether runs can name their commit."""
    from ccwm.tracking.git import git_state

    commit, dirty = git_state()
    if commit == "unknown":
        return Finding("no commit; runs will not name their code", hint="git init, git commit")
    return Finding(f"{commit[:12]}, sources {'changed since' if dirty == 'true' else 'unchanged'}")


def video() -> Finding:
    """The encoder of the rollouts' videos."""
    import imageio_ffmpeg

    return Finding(f"ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}")


def params() -> Finding:
    """The settings and their tasks."""
    settings = load_settings(PARAMS)
    for task in settings.study.tasks:
        check_task(task)
    return Finding(f"{PARAMS}: {len(cells(settings.study))} runs")


def rendering(settings: Settings) -> Finding:
    """MuJoCo's pixels: needed or not, rendered or not, and their hash, to be compared between machines."""
    from ccwm.envs.factory import make_env

    needed = [task for task in settings.study.tasks if needs_gl(task, settings.env)]
    try:
        probe()
    except UserError as error:
        if needed:
            raise UserError(f"{error.message} (needed by {needed[0]})", hint=error.hint) from None
        return Finding(f"{error.message} (no task of params.yaml needs it)")
    task = next((task for task in needed if not task.startswith("gym:")), SAMPLE)
    with closing(make_env(task, settings.env)) as env:
        env.reset(seed=0)
        frame = hashlib.sha256(env.render().tobytes()).hexdigest()[:16]
    return Finding(f"MUJOCO_GL={os.environ.get('MUJOCO_GL', 'egl')}; the first frame of {task} is {frame}")


def device(settings: Settings) -> Finding:
    """What Fabric computes on, and which precisions work there, tried with a product."""
    import lightning as L
    import torch

    trainer = settings.trainer
    seen = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    if trainer.accelerator == "gpu" and not seen:
        hint = "trainer.accelerator: auto, or install a CUDA build of torch (docs/install.md)"
        raise UserError("trainer.accelerator is gpu, and torch sees none", hint=hint)
    chosen = L.Fabric(accelerator=trainer.accelerator, devices=1).device
    works = [name for name in get_args(Trainer.model_fields["precision"].annotation) if precision_works(trainer, name)]
    listed = f"{chosen} of {', '.join(seen) or f'{cores()} cores, no GPU'}; precisions {', '.join(works)}"
    if trainer.precision not in works:
        hint = f"trainer.precision: {works[0]}" if works else "make install"
        raise UserError(f"{listed}, not {trainer.precision}", hint=hint)
    if chosen.type == "cpu" and trainer.precision.endswith("mixed"):
        return Finding(f"{listed}; mixed precision is slower here", hint="trainer.precision: 32-true")
    return Finding(listed)


def precision_works(trainer: Trainer, precision: str) -> bool:
    """Whether a product and its gradient can be computed so."""
    import lightning as L
    import torch

    try:
        with warnings.catch_warnings(action="error"):  # Lightning warns when it replaces a precision that it has not
            fabric = L.Fabric(accelerator=trainer.accelerator, devices=1, precision=precision)  # type: ignore[arg-type]
        with fabric.init_module():
            layer = torch.nn.Linear(4, 4)
        with fabric.autocast():
            layer(torch.ones_like(layer.weight)).sum().backward()
    except Exception:  # each backend has its own way to refuse
        return False
    return True


def threads(settings: Settings) -> Finding:
    """Pinned threads against cores."""
    wanted = settings.trainer.threads
    hint = "" if wanted <= cores() else f"trainer.threads: {cores()}, which changes the last bits of the results"
    return Finding(f"trainer.threads is {wanted}, of {cores()} cores", hint)


def tracking(settings: Settings) -> Finding:
    """The store, reached and written to; and what could not be sent to it."""
    from ccwm.tracking.store import check_store

    answer = check_store(settings.tracking.experiment)
    unsent = len(list((WORK / "spool").glob("*/journal.jsonl")))
    return Finding(f"{answer}; {unsent} runs are not sent", "ccwm tracking sync") if unsent else Finding(answer)


def pipeline(settings: Settings) -> Finding:
    """What DVC would run, and whether the record of the machine behind the results is current."""
    from ccwm.verify.record import RESULTS, load_record, read_checkout

    message = f"{len(dvc_status(Path.cwd()))} of {len(cells(settings.study))} cells to run"
    hint = "make record, and commit"
    made = {name: stage.files for name, stage in read_checkout(Path.cwd()).stages.items()}
    known = load_record(RESULTS, hint=hint).stages if RESULTS.is_file() else {}
    if made and made != {name: stage.files for name, stage in known.items()}:
        return Finding(f"{message}; {RESULTS} does not name the machine that made dvc.lock", hint)
    return Finding(message)


def disk(settings: Settings) -> Finding:
    """Free space against what the study will need."""
    from ccwm.plan.estimate import disk as needed
    from ccwm.plan.measure import count_weights, make_module, measure_task

    study = settings.study
    task = measure_task(min(study.tasks, key=lambda name: needs_gl(name, settings.env)), settings.env, seconds=0)
    weights = {name: count_weights(make_module(resolve(settings, name).agent_config, task)) for name in study.variants}
    kept, working = map(int, needed(resolve(settings, study.variants[0]), weights, task))
    free = shutil.disk_usage(Path.cwd()).free
    message = f"{decimal(free)} free; the study keeps {decimal(kept)}, an agent takes {decimal(working)}"
    if free < kept + working:
        raise UserError(message, hint="free some, or lower study.seeds, train.env_steps or env.size")
    return Finding(message)


def show(findings: dict[str, Finding], console: Console) -> bool:
    """The screen; whether there is no problem."""
    table = Table("", "check", "what", box=None)
    for name, (message, hint, problem) in findings.items():
        mark = Text("✗", "bold red") if problem else Text("•", "yellow") if hint else Text("✓", "green")
        table.add_row(mark, name, Text(f"{message}\n→ {hint.strip()}" if hint else message))
    console.print(table)
    problems = sum(finding.problem for finding in findings.values())
    console.print(f"{problems} to fix" if problems else "ready")
    return problems == 0
