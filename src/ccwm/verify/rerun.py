"""The pipeline, run again in a temporary clone: its own sources, results, cache, work directory and MLflow store."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import Any

from ccwm.cells import STAGES, dvc_status, run_command
from ccwm.errors import UserError, did_you_mean
from ccwm.progress import counter
from ccwm.verify.record import read_lock

MADE = ("results", "data", "models", "report", ".work")
FOREIGN = ("MLFLOW_", "DVC_", "GIT_", "CCWM_")
"""Variables that would lead a clone back to the project, or to another store."""


class Clone:
    """A clone of a project's last commit, or of another."""

    def __init__(self, project: Path, root: Path, *, commit: str = "HEAD") -> None:
        self.project, self.root = project, root
        ours = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self.environment = {
            **ours,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{ours.get('PATH', '')}",
            "PYTHONPATH": str(root / "src"),  # the environment's own ccwm is the project's, not the commit's
            "DVC_NO_ANALYTICS": "1",
        }
        revision = f"{commit}^{{commit}}"
        self.commit = self._run("git rev-parse --verify", f"there is no commit {commit}", project, revision).strip()
        message = "git could not clone the project"
        self._run("git clone --quiet --no-checkout", message, project, str(project), str(root))
        self._run("git checkout --quiet --detach", message, root, self.commit)

    def forget_results(self) -> None:
        """As if nothing had ever been run."""
        (self.root / "dvc.lock").unlink(missing_ok=True)
        for name in MADE:
            shutil.rmtree(self.root / name, ignore_errors=True)

    def stale(self) -> dict[str, list[str]]:
        """Stages whose sources or settings are no longer those that dvc.lock names, with what changed."""
        found = {stage: [*_modified(changes)] for stage, changes in dvc_status(self.root, self.environment).items()}
        return {stage: names for stage, names in found.items() if names}

    def fetch_inputs(self, stages: Sequence[str]) -> None:
        """Copy from the project's cache what these stages read and do not make themselves."""
        lock = read_lock(self.root)
        made = {out["path"] for name in stages for out in lock[name]["outs"]}
        read = [dep["path"] for name in stages for dep in lock[name]["deps"]]
        outs = {out["path"] for entry in lock.values() for out in entry["outs"]} - made
        missing = [out for out in sorted(outs) if not (self.root / out).exists()]
        wanted = [out for out in missing if any(Path(out).is_relative_to(path) for path in read)]
        if wanted:
            cache = self._run("dvc cache dir", "DVC has no cache", self.project).strip()
            self._run("dvc remote add --local --default project", "DVC refused its own cache", self.root, cache)
            message = "the inputs of these stages are not in DVC's cache; `dvc repro`, or verify without naming stages"
            self._run("dvc pull --quiet", message, self.root, *wanted)

    def reproduce(self, stages: Sequence[str] = (), *, total: int) -> None:
        """Run these stages alone, or all of them, even those that DVC considers up to date."""
        command = ["dvc", "repro", "--force", "--no-run-cache", *(["--single-item", *stages] if stages else [])]
        log, started = "", 0
        with (
            counter("stages", total) as advance,
            Popen(command, cwd=self.root, env=self.environment, stdout=PIPE, stderr=STDOUT, text=True) as running,
        ):
            for line in running.stdout or ():
                log += line
                if line.startswith("Running stage"):
                    started += 1
                    if started > 1:  # the one before it has ended
                        advance()
            advance()
        if running.returncode != 0:
            raise UserError(f"a stage failed when it was run again:\n{log[-2000:]}")

    def _run(self, command: str, message: str, directory: Path, *arguments: str) -> str:
        return run_command([*command.split(), *arguments], message, directory, self.environment)


def _modified(changes: list[Any]) -> Iterator[str]:
    """Names of sources and settings among DVC's changes of a stage; a fresh clone has no data, which is no change."""
    for change in changes:
        if isinstance(change, str):
            yield from [change] if change != "always changed" else []
            continue
        for path, state in change.get("changed deps", {}).items():
            if isinstance(state, dict):
                yield from (f"{path}: {key} {how}" for key, how in state.items())
            elif path.startswith(("src/", "pipeline/")):
                yield f"{path} {state}"


def chosen_stages(names: Sequence[str], root: Path) -> list[str]:
    """Cells of the committed matrix for `train` or `train@task-variant-0`, in the order in which they can run."""
    known = list(read_lock(root))
    if not known:
        raise UserError("dvc.lock is missing or empty at this commit", hint="run `dvc repro` and commit its results")
    kinds = [stage for stage in STAGES if any(name.partition("@")[0] == stage for name in known)]
    for name in names:
        if name not in (*kinds, *known):
            raise UserError(f"no stage {name!r} in dvc.lock.{did_you_mean(name, [*kinds, *known])}")
    chosen = [name for name in known if not names or name in names or name.partition("@")[0] in names]
    return sorted(chosen, key=lambda name: kinds.index(name.partition("@")[0]))
