"""The pipeline, run again in a temporary clone: its own sources, results, cache, work directory and MLflow store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ccwm.cells import STAGES
from ccwm.errors import UserError, did_you_mean
from ccwm.progress import counter
from ccwm.verify.record import read_lock

MADE = ("dvc.lock", "results", "data", "models", "report", ".work")
FOREIGN = ("MLFLOW_", "DVC_", "GIT_", "CCWM_")
"""Variables that would lead a clone back to the project, or to somebody's store."""


class CannotVerify(UserError, RuntimeError):
    """The pipeline could not be run again."""


class Clone:
    """A clone of a project's last commit."""

    def __init__(self, project: Path, root: Path) -> None:
        self.project, self.root = project, root
        ours = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self.environment = {
            **ours,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{ours.get('PATH', '')}",
            "PYTHONPATH": str(root / "src"),  # the environment's own ccwm is the project's, not the commit's
            "DVC_NO_ANALYTICS": "1",
        }
        commit = self._tell(["git", "rev-parse", "HEAD"], "there is no commit to verify: `git commit` first", project)
        self.commit = commit.strip()
        cure = "git could not clone the project"
        self._tell(["git", "clone", "--quiet", "--no-checkout", str(project), str(root)], cure, project)
        self._tell(["git", "checkout", "--quiet", "--detach", self.commit], cure)

    def forget_results(self) -> None:
        """As if nothing had ever been run."""
        for name in MADE:
            path = self.root / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def stale(self) -> dict[str, list[str]]:
        """Stages whose sources or settings are no longer those that dvc.lock names, with what changed."""
        answer = self._tell(["dvc", "status", "--json"], "DVC could not read the pipeline")
        found: dict[str, list[str]] = {}
        for stage, changes in json.loads(answer[answer.index("{") :]).items():
            names = [name for change in changes if isinstance(change, dict) for name in _modified(change)]
            names += [change for change in changes if isinstance(change, str) and change != "always changed"]
            if names:
                found[stage] = names
        return found

    def fetch_inputs(self, stages: Sequence[str]) -> None:
        """Copy from the project's cache what these stages read and do not make themselves."""
        lock = read_lock(self.root)
        made = {out["path"] for name in stages for out in lock[name]["outs"]}
        read = [dep["path"] for name in stages for dep in lock[name]["deps"]]
        outs = [out["path"] for entry in lock.values() for out in entry["outs"]]
        wanted = [
            out
            for out in outs
            if out not in made
            and not (self.root / out).exists()
            and any(out == path or out.startswith(f"{path}/") for path in read)
        ]
        if wanted:
            cache = self._tell(["dvc", "cache", "dir"], "DVC has no cache", self.project).strip()
            self._tell(["dvc", "remote", "add", "--local", "--default", "project", cache], "DVC refused its own cache")
            cure = "the inputs of these stages are not in DVC's cache: `dvc repro`, or verify without naming stages"
            self._tell(["dvc", "pull", "--quiet", *wanted], cure)

    def reproduce(self, stages: Sequence[str] = (), *, total: int) -> None:
        """Run these stages alone, or all of them, whatever DVC thinks of them."""
        command = ["dvc", "repro", "--force", "--no-run-cache", *(["--single-item", *stages] if stages else [])]
        log = self.root.with_name("log")
        with counter("stages", total) as advance, log.open("w") as file:
            running = subprocess.Popen(
                command,
                cwd=self.root,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert running.stdout is not None
            begun = 0
            for line in running.stdout:
                file.write(line)
                if line.startswith("Running stage"):
                    begun += 1
                    if begun > 1:
                        advance()
            code = running.wait()
            advance()
        if code != 0:
            raise CannotVerify(f"a stage failed when it was run again:\n{''.join(log.read_text()[-2000:])}")

    def _tell(self, command: list[str], cure: str, where: Path | None = None) -> str:
        """The output of a command that must succeed."""
        try:
            done = subprocess.run(
                command, cwd=where or self.root, env=self.environment, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise CannotVerify(f"{command[0]} cannot be run ({error}): `make install`") from None
        if done.returncode != 0:
            raise CannotVerify(f"{cure} (`{' '.join(command[:2])}`: {done.stderr.strip()[-500:]})")
        return done.stdout


def _modified(change: dict[str, object]) -> list[str]:
    """Names of sources and settings in one of DVC's changes; a fresh clone has no data, which is no change."""
    names: list[str] = []
    deps = change.get("changed deps")
    for path, state in deps.items() if isinstance(deps, dict) else ():
        if isinstance(state, dict):
            names += [f"{path}: {key} {how}" for key, how in state.items()]
        elif path.startswith(("src/", "pipeline/")):
            names.append(f"{path} {state}")
    return names


def chosen_stages(names: Sequence[str], root: Path) -> list[str]:
    """Entries of the committed matrix for `train` or `train@task-variant-0`, in the order in which they can run."""
    known = list(read_lock(root))
    if not known:
        raise CannotVerify("dvc.lock is missing or empty at this commit: run `dvc repro` and commit its results")
    kinds = {name.partition("@")[0]: None for name in known}
    for name in names:
        if name not in known and name not in kinds:
            raise CannotVerify(f"no stage {name!r} in dvc.lock.{did_you_mean(name, [*kinds, *known])}")
    order = list(STAGES)
    chosen = [name for name in known if not names or name in names or name.partition("@")[0] in names]
    return sorted(chosen, key=lambda name: order.index(name.partition("@")[0]))
