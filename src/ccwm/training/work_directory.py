"""The directory in which a run works until it is finished, and from which it resumes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ccwm.cells import WORK, Cell, settings_hash
from ccwm.errors import UserError
from ccwm.settings.parsing import read_yaml
from ccwm.settings.schema import Settings

PIPELINE = Path("dvc.yaml")


def work_directory(settings: Settings, cell: Cell, *, data: Path | None = None) -> Path:
    """`.work/train/<task>/<variant>/<seed>/<hash>`: another directory for other settings, other code or other data.

    ``data`` holds the random episodes where they are not the pipeline's. The code is what DVC depends on: the stage's
    ``deps`` in ``dvc.yaml`` are the one list of what decides the bits.
    """
    data = cell.data if data is None else data
    manifest = data / "train" / "manifest.jsonl"
    if not manifest.is_file():
        raise UserError(f"{data} holds no random episodes", hint="run `dvc repro collect` first")
    key = hashlib.sha256(settings_hash(settings, cell).encode())
    key.update(manifest.read_bytes())
    for path in source_files(PIPELINE, cell.stage):
        key.update(path.read_bytes())
    return WORK / "train" / cell.key / key.hexdigest()[:12]


def source_files(pipeline: Path, stage: str) -> list[Path]:
    """The Python files that a stage of ``dvc.yaml`` depends on."""
    listed = [Path(dep) for dep in read_yaml(pipeline)["stages"][stage]["deps"] if "$" not in dep]
    files = [path for dep in listed for path in ([dep] if dep.suffix else dep.rglob("*.py"))]
    return sorted(pipeline.parent / path for path in files)


@contextmanager
def exclusive(work: Path) -> Iterator[None]:
    """Hold the work directory, or fail at once with the name of the process that holds it."""
    work.mkdir(parents=True, exist_ok=True)
    holder = work / "holder"
    lock = FileLock(work / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        name = holder.read_text() if holder.exists() else "an unknown process"
        raise UserError(f"{work} is in use by {name}", hint="wait for it or end it, then run again") from None
    try:
        holder.write_text(f"process {os.getpid()}")
        yield
    finally:
        lock.release()
