"""The code of a run: one commit, the changes since, and the settings; captured at home, laid out in a slot."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from ruamel.yaml import YAML

from ccwm.cells import PARAMS, WORK
from ccwm.errors import UserError
from ccwm.files import write_atomically
from ccwm.fleet.parcel import digest
from ccwm.settings.presets import PRESETS

PATCHES = WORK / "patches"
"""Uncommitted changes that cells ran with."""
MADE = ("results", "dvc.lock", "evidence")
"""What runs make: it travels as inputs and results of cells, not as code."""
WHOLE = (".", *(f":(exclude){name}" for name in MADE))
NEW_FILES = ("src", "pipeline")
"""Where files that git does not know yet belong to the code."""


class Code(NamedTuple):
    """A commit without its history, and a patch for what is not committed."""

    commit: str
    pack: bytes
    patch: bytes
    params: str

    @property
    def key(self) -> str:
        """Changes with anything that a slot would run."""
        return digest(self.commit, self.patch, self.params)


def capture(root: Path, *, commit: str | None = None, params: str | None = None) -> Code:
    """The code at ``root``: its last commit and what has changed since, or another commit alone.

    ``params`` are the settings of a study that has its own.
    """
    head = _git(root, "rev-parse", "--verify", f"{commit or 'HEAD'}^{{commit}}").decode().strip()
    own_params = params is not None
    patch = b"" if commit else _changes(root, *([f":(exclude){PARAMS}"] if own_params else []))
    objects = _git(root, "rev-list", "--objects", "--max-count=1", head)
    pack = _git(root, "pack-objects", "--stdout", "-q", stdin=b"\n".join(line[:40] for line in objects.splitlines()))
    return Code(head, pack, patch, params if params is not None else (root / PARAMS).read_text())


def presets_at(root: Path, commit: str) -> bytes:
    """The directory of presets at a commit, as a tar."""
    return _git(root, "archive", commit, "--", str(PRESETS))


def lay_out(code: Code, root: Path) -> None:
    """Make ``root`` a repository with exactly this code, whatever it held; what cells made there stays."""
    if not (root / ".git").is_dir():
        root.mkdir(parents=True, exist_ok=True)
        _git(root, "init", "--quiet")
        (root / ".git" / "info" / "exclude").write_text(".work\n")  # here it may be a link, which .gitignore misses
    if (root / ".git" / "HEAD").read_text().strip() == code.commit:
        _git(root, "update-index", "--no-skip-worktree", str(PARAMS))
    else:
        _git(root, "unpack-objects", "-q", stdin=code.pack)  # git checks every object against its hash
        write_atomically(root / ".git" / "shallow", f"{code.commit}\n".encode())
        (root / ".git" / "index").unlink(missing_ok=True)  # it may hide params.yaml, which another commit cannot pass
        _git(root, "read-tree", code.commit)
        _git(root, "update-ref", "--no-deref", "HEAD", code.commit)
    _git(root, "checkout", "--quiet", "--force", code.commit, "--", *WHOLE)  # only what differs is written
    _git(root, "clean", "-fdq", "--", *NEW_FILES)
    if code.patch:
        _git(root, "apply", "--binary", "-", stdin=code.patch)
    if (root / PARAMS).read_text() != code.params:
        write_atomically(root / PARAMS, code.params.encode())
        if f"diff --git a/{PARAMS} ".encode() not in code.patch:  # a narrower study is no change of what a cell reads
            _git(root, "update-index", "--skip-worktree", str(PARAMS))


def keep_patch(root: Path, patch: bytes) -> str:
    """Keep a patch for those who read its name in a ``run.json``; returns the name, empty where nothing is changed."""
    if not patch:
        return ""
    name = f"{digest(patch)}.patch"
    (root / PATCHES).mkdir(parents=True, exist_ok=True)
    write_atomically(root / PATCHES / name, patch)
    return name


def write_cache_config(root: Path, cache: str) -> None:
    """Let a clone use a cache that others use too, without copies where the disk has links."""
    (root / ".dvc" / "config.local").write_text(f'[cache]\n    dir = {cache}\n    type = "reflink,hardlink,copy"\n')


def narrow(params: str, *, task: str, variant: str, seed: int) -> str:
    """The settings of one cell: a study of hundreds takes DVC many seconds to read. Only the report reads `study`."""
    content = YAML(typ="safe").load(params)
    study = {"tasks": [task], "variants": [variant or content["study"]["variants"][0]], "seeds": [seed]}
    layout = YAML()
    layout.preserve_quotes = True
    layout.width = 4096
    text = layout.load(params)
    text["study"].update(study)
    with tempfile.TemporaryFile("w+") as file:
        layout.dump(text, file)
        file.seek(0)
        return file.read()


def _changes(root: Path, *excluded: str) -> bytes:
    """The difference between the last commit and the files: all that git tracks, and new sources."""
    with tempfile.TemporaryDirectory() as folder:
        # A new index, since a copy would trust the times of files that were changed within the second of the commit.
        environment = {**os.environ, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(root, "read-tree", "HEAD", environment=environment)
        _git(root, "add", "--update", "--", *WHOLE, environment=environment)
        new = [name for name in NEW_FILES if (root / name).is_dir()]
        _git(root, "add", "--all", "--", *new, environment=environment)
        return _git(root, "diff", "--cached", "--binary", "HEAD", "--", *WHOLE, *excluded, environment=environment)


def _git(root: Path, *arguments: str, stdin: bytes = b"", environment: dict[str, str] | None = None) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=root, input=stdin, env=environment, capture_output=True, check=False)
    if done.returncode != 0:
        hint = "the fleet needs a git repository with a commit"
        raise UserError(f"git {arguments[0]} failed ({done.stderr.decode().strip()[-300:]})", hint=hint)
    return done.stdout
