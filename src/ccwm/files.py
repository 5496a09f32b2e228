"""Files that are either whole or not there."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path


def temporary_path(path: Path) -> Path:
    """Where ``path`` is written before it is renamed; one name a target, so that a re-run overwrites a dead one's."""
    return path.with_name(f".{path.name}.tmp")


def write_atomically(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path`` so that a kill or a full disk leaves the old file or the new one, never a part."""
    temporary = temporary_path(path)
    try:
        with naming(path), temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is told
            temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within, an error of the file system names ``path``: a full disk is told without one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def sync_directory(directory: Path) -> None:
    """Make renames, new and removed names in ``directory`` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_line(path: Path, line: bytes, end: int, *, durable: bool) -> int:
    """Write ``line`` at byte ``end``, over what a kill left behind it, and return the new end.

    A full disk leaves the file as it was; ``durable`` makes the line survive a power cut too.
    """
    with naming(path), path.open("r+b", buffering=0) as file:
        file.truncate(end)
        file.seek(end)
        try:
            while line:
                line = line[file.write(line) :]
            if durable:
                os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise
        return file.tell()


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Put a mapping at ``path`` as indented JSON in the order given, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def write_csv(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Put rows at ``path`` with full precision, whole or not at all; columns in the order of their first appearance."""
    listed = list(rows)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(name for row in listed for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    write_atomically(path, buffer.getvalue().encode())


def md5(path: Path) -> str:
    """The MD5 of a file, as ``dvc.lock`` has it."""
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


@contextmanager
def published(directory: Path) -> Iterator[Path]:
    """A new directory to fill; it takes the place of ``directory`` when all went well, and vanishes otherwise."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    fresh, old = temporary_path(directory), directory.with_name(f".{directory.name}.old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir()
    try:
        yield fresh
        if directory.exists():
            directory.rename(old)
        fresh.rename(directory)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    sync_directory(directory.parent)
