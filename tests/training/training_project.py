"""A tiny project in a directory of its own, and its stages as real processes that can be signalled.

Processes come from a fork server that has imported torch, Lightning and MLflow once, which saves seconds a process.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import runpy
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Run
from ruamel.yaml import YAML

from ccwm.settings.loading import load_settings
from ccwm.settings.variants import resolve
from ccwm.training.loop import Learning

ROOT = Path(__file__).parents[2]
TASK, VARIANT = "maze_two_rooms", "ccwm"
ENTRY = ("--task", TASK, "--variant", VARIANT, "--seed", "0")
KEY = Path(TASK, VARIANT, "0")
CYCLES, UPDATES = 4, 10

TINY: dict[str, dict[str, Any]] = {
    "study": {"variants": [VARIANT]},
    "env": {"time_limit": 40},  # 20 steps of 2 frames an episode
    "collect": {"episodes": 2, "heldout": 1},  # training begins at 80 frames
    "model": {"deter": 8, "stoch": 3, "hidden": 8, "reward_units": 8},
    "actor_critic": {"horizon": 3, "starts": 4, "units": 8},
    # One episode of 40 frames in each of the cycles 1, 2 and 3; cycle 0 learns from the random ones.
    "train": {
        "env_steps": 200,
        "update_every": 40,
        "updates": UPDATES,
        "batch": 2,
        "length": 6,
        "evaluate_every": 80,
        "log_every": 3,
    },
    "rollout": {"context": 3, "horizon": 8},
    "states": {"episodes": 1, "mapped": 20},
    "transfer": {"rows": [["R"], ["L"]]},
}

SERVER = multiprocessing.get_context("forkserver")
STUDIES = ("agents", "pictures", "prediction", "similarity", "states", "transfer")
SERVER.set_forkserver_preload(
    ["ccwm.tracking.stage", "ccwm.training.publish", "ccwm.training.collect", "ccwm.report.page", "mlflow.pyfunc"]
    + [f"ccwm.studies.{name}" for name in STUDIES]
)


def write_params(path: Path, changes: Mapping[str, Mapping[str, Any]] = {}) -> None:
    """The smoke preset, made tiny, with a test's own changes."""
    yaml = YAML()
    content = yaml.load(ROOT / "presets" / "smoke.yaml")
    for layer in (TINY, changes):
        for section, fields in layer.items():
            content[section].update(fields)
    yaml.dump(content, path)


def learning_of(path: Path) -> Learning:
    """What ``pipeline/train.py`` reads of a params.yaml."""
    settings = resolve(load_settings(path), VARIANT)
    return Learning(*(getattr(settings, section) for section in Learning._fields))


class Project:
    """A project directory: its stages, what they wrote, and its MLflow runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.model = root / "models" / KEY
        self.trained = root / "results" / "train" / KEY

    def copy(self, root: Path) -> Project:
        shutil.copytree(self.root, root)
        return Project(root)

    def start(self, script: str, *arguments: str, **environment: str) -> Stage:
        """A stage script as a process of its own."""
        return Stage(self.root, f"pipeline/{script}.py", arguments, environment)

    def run(self, script: str, *arguments: str, **environment: str) -> Stage:
        """A stage script from its start to its end."""
        stage = self.start(script, *arguments, **environment)
        stage.end()
        return stage

    def files(self, *folders: str) -> dict[str, bytes]:
        """Every file that shows in these folders; but for run.json, which tells of costs, equal runs are equal here."""
        paths = (path.relative_to(self.root) for folder in folders for path in (self.root / folder).rglob("*"))
        return {
            str(path): (self.root / path).read_bytes()
            for path in paths
            if (self.root / path).is_file()
            and path.name != "run.json"
            and not any(part.startswith(".") for part in path.parts)
        }

    @property
    def work(self) -> Path:
        """The only work directory of the training stage."""
        (found,) = (self.root / ".work" / "train" / KEY).iterdir()
        return found

    def checkpoints(self) -> list[Path]:
        return sorted((self.root / ".work" / "train" / KEY).glob("*/checkpoints/*.pt"))

    def updates_logged(self) -> float:
        """The last update whose losses the run has recorded."""
        text = "".join(path.read_text() for path in (self.root / ".work" / "spool").glob("*/journal.jsonl"))
        return max((float(number) for number in re.findall(r'"updates":([\d.]+)', text)), default=0.0)

    def mlflow_runs(self, stage: str) -> list[Run]:
        client = MlflowClient(f"sqlite:///{self.root}/mlflow.db")
        experiment = client.get_experiment_by_name("ccwm")
        return list(client.search_runs([experiment.experiment_id], f"tags.stage = '{stage}'")) if experiment else []


class Stage:
    """A running stage."""

    def __init__(self, root: Path, script: str, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self._log = root / f"{Path(script).stem}.log"
        self._process = SERVER.Process(
            daemon=True, target=run_script, args=(root, script, arguments, environment, self._log)
        )
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def wait_until(self, happened: Callable[[], object]) -> None:
        """Return the moment that it happened; the stage must still be running."""
        while not happened():
            assert self._process.is_alive(), f"the stage ended too early: {self.said}"
            time.sleep(0.001)

    def signal(self, signum: signal.Signals) -> int:
        """Send a signal, and return the exit code."""
        os.kill(self.pid, signum)
        return self.end()

    def end(self) -> int:
        """Wait for the end, and return the exit code."""
        self._process.join(1200)  # far beyond pytest's own limit, which is the one that counts
        assert self._process.exitcode is not None, self.said
        return self._process.exitcode

    @property
    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


def run_script(root: Path, script: str, arguments: tuple[str, ...], environment: dict[str, str], log: Path) -> None:
    """In a fresh process: be `python <script> <arguments>` in ``root``."""
    os.chdir(root)
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    limit = environment.pop("FILE_LIMIT", None)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    os.environ.update(environment)
    with log.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
