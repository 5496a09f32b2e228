"""A whole project in a temporary directory: its own sources, settings, git history, cache and MLflow store."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from imports import ROOT
from ruamel.yaml import YAML

from ccwm.settings.parsing import read_yaml

TASK, VARIANT, SEED = "maze_two_rooms", "ccwm", 0
AGENT = f"{TASK}-{VARIANT}-{SEED}"
"""How DVC names the one entry of the matrix."""

STAGES = {
    f"collect@{TASK}-{SEED}",
    *(f"{stage}@{AGENT}" for stage in ("train", "evaluate", "rollout-viz", "transfer")),
    "report",
}
COPIED = ("src", "pipeline", "presets", "claims.yaml", "dvc.yaml", "pyproject.toml", ".gitignore", ".dvcignore")


class Project:
    """Commands, settings and files of one copy of the project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ours = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW_", "DVC_", "GIT_"))}
        self._environment = {
            **ours,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{ours['PATH']}",
            "PYTHONPATH": str(root / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "NO_COLOR": "1",
            "DVC_NO_ANALYTICS": "1",
            **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "tester"),
            **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "tester@example.invalid"),
        }

    def run(self, *command: str) -> str:
        """The output of a command that must succeed."""
        done = subprocess.run(command, cwd=self.root, env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", message)

    def set_param(self, key: str, value: Any) -> None:
        """Set `section.field` of params.yaml."""
        path = self.root / "params.yaml"
        content = read_yaml(path)
        section, _, field = key.partition(".")
        content[section][field] = value
        with path.open("w", encoding="utf-8") as file:
            YAML(typ="safe").dump(content, file)

    def param(self, key: str) -> Any:
        section, _, field = key.partition(".")
        return read_yaml(self.root / "params.yaml")[section][field]

    @contextmanager
    def restored(self, name: str) -> Iterator[Path]:
        """The file as it is now stands there again after the block."""
        path = self.root / name
        before = path.read_bytes()
        try:
            yield path
        finally:
            path.write_bytes(before)


def make_project(root: Path) -> Project:
    """A committed copy of the sources with the smoke settings, one variant only, to halve what must be run."""
    root.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, root / name)
    shutil.copy(ROOT / "presets" / "smoke.yaml", root / "params.yaml")
    project = Project(root)
    project.set_param("study.tasks", [TASK])
    project.set_param("study.variants", [VARIANT])
    project.set_param("study.seeds", [SEED])
    project.run("git", "init", "--quiet")
    project.run("dvc", "init", "--quiet")
    project.commit("A project")
    return project
