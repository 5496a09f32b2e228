"""A tiny project with a search, and its processes, which can be killed.

Processes come from a fork server that has imported torch, Lightning, MLflow and Optuna once.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Run

from ccwm.settings.loading import whole_settings
from ccwm.settings.parsing import read_yaml
from ccwm.settings.schema import Settings
from ccwm.settings.tune import Parameter
from ccwm.tuning.space import Space

ROOT = Path(__file__).parents[2]
STUDY = "tiny"

TINY: dict[str, dict[str, Any]] = {
    "env": {"time_limit": 40},  # 20 steps of 2 frames an episode
    "collect": {"episodes": 2, "heldout": 1},  # training begins at 80 frames
    "model": {"deter": 8, "stoch": 3, "hidden": 8, "reward_units": 8},
    "actor_critic": {"horizon": 3, "starts_per_window": 2, "units": 8},
    "train": {
        "env_steps": 160,
        "update_every": 40,
        "updates": 4,
        "batch": 2,
        "length": 6,
        "evaluate_every": 40,
        "log_every": 2,
    },
    "tune": {
        "study": STUDY,
        "space": {
            "truncation.threshold": {"kind": "float", "low": 0.02, "high": 0.5, "log": True},
            "truncation.window": {"kind": "int", "low": 2, "high": 5},
            "truncation.lookback": {"kind": "int", "low": 0, "high": "truncation.window"},
        },
        "seeds": [0, 1],
        "fresh_seeds": [100],
        "top": 1,
        "startup": 2,
        "trials": 3,
        "heartbeat": 1,
    },
}

KEYS = list(TINY["tune"]["space"])
SPACE = Space({key: Parameter(**entry) for key, entry in TINY["tune"]["space"].items()})

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["ccwm.tuning.search", "ccwm.cli.tune", "mlflow.pyfunc", "sklearn.ensemble"])


@cache
def smoke() -> str:
    """The smoke preset as JSON, which is read much faster than YAML and is YAML, too."""
    return json.dumps(read_yaml(ROOT / "presets" / "smoke.yaml"))


def make_settings(**tune: Any) -> Settings:
    """The smoke preset, made tiny, with a test's own settings of the search."""
    return whole_settings(tiny_content(**tune), where="tiny")


def tiny_content(**tune: Any) -> dict[str, Any]:
    """The same as plain values."""
    content: dict[str, Any] = json.loads(smoke())
    for section, fields in TINY.items():
        content[section].update(fields)
    content["tune"].update(tune)
    return content


def write_params(path: Path, **tune: Any) -> None:
    """The same as a file."""
    path.write_text(json.dumps(tiny_content(**tune), indent=2))


class Project:
    """A project directory, its searches and what they left."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def start(self, *arguments: str, name: str = "tune") -> SearchProcess:
        """`python pipeline/tune.py` as a process of its own."""
        return SearchProcess(self.root, arguments, self.root / f"{name}.log")

    def run(self, *arguments: str) -> SearchProcess:
        """The same, from its start to its end."""
        process = self.start(*arguments)
        process.end()
        return process

    @property
    def results(self) -> Path:
        return self.root / "results" / "tune" / STUDY

    def trials(self) -> pd.DataFrame:
        return pd.read_csv(self.results / "trials.csv")

    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads((self.results / "study.json").read_text())
        return summary

    def journal(self) -> str:
        path = self.root / ".work" / "tune" / STUDY / "journal.jsonl"
        return path.read_text() if path.exists() else ""

    def checkpoints(self) -> list[Path]:
        return list((self.root / ".work" / "tune" / STUDY / "work").glob("*/*/checkpoints/*.pt"))

    def training(self) -> set[Path]:
        """The trials that have left a checkpoint and are not over."""
        return {path.parents[2] for path in self.checkpoints()}

    def runs(self, stage: str) -> list[Run]:
        client = MlflowClient(f"sqlite:///{self.root}/mlflow.db")
        experiment = client.get_experiment_by_name("ccwm")
        return list(client.search_runs([experiment.experiment_id], f"tags.stage = '{stage}'")) if experiment else []


class SearchProcess:
    """A running search."""

    def __init__(self, root: Path, arguments: tuple[str, ...], log: Path) -> None:
        self._log = log
        self._process = SERVER.Process(daemon=True, target=run_search, args=(root, arguments, log))
        self._process.start()

    def wait_until(self, happened: Callable[[], object]) -> None:
        """Return the moment that it happened; the search must still be running."""
        while not happened():
            assert self._process.is_alive(), f"the search ended too early: {self.output}"
            time.sleep(0.005)

    def kill(self, signum: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal, and return the exit code."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signum)
        return self.end()

    def end(self) -> int:
        """Wait for the end, and return the exit code."""
        self._process.join()  # a hang is ended by the suite's own limit
        assert self._process.exitcode is not None
        return self._process.exitcode

    @property
    def output(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


def run_search(root: Path, arguments: tuple[str, ...], log: Path) -> None:
    """In a fresh process: be `python pipeline/tune.py <arguments>` in ``root``."""
    os.chdir(root)
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    with log.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.argv = ["pipeline/tune.py", *arguments]
    runpy.run_path("pipeline/tune.py", run_name="__main__")


def make_project(root: Path, **tune: Any) -> Project:
    """A project without data or store."""
    root.mkdir(parents=True)
    for folder in ("pipeline", "presets"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "dvc.yaml").write_text("stages: {train: {deps: []}}\n")
    write_params(root / "params.yaml", **tune)
    return Project(root)
