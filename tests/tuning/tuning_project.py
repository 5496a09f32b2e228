"""A tiny project with a search, and its processes, which can be killed."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Run
from project import ROOT, Process

from ccwm.cli.app import main
from ccwm.settings.loading import whole_settings
from ccwm.settings.parsing import read_yaml
from ccwm.settings.schema import Settings
from ccwm.settings.tune import Parameter
from ccwm.tuning.space import Space

STUDY = "tiny"

TINY: dict[str, dict[str, Any]] = {
    "env": {"time_limit": 40},  # 20 steps of 2 frames an episode
    "collect": {"episodes": 2, "heldout": 1},  # training begins at 80 frames
    "model": {"deter": 8, "stoch": 3, "hidden": 8, "reward_units": 8},
    "actor_critic": {"horizon": 3, "starts_per_window": 2, "units": 8},
    "train": {
        "env_steps": 160,
        "update_every": 40,
        "updates": 2,
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

    def copy(self, root: Path) -> Project:
        """The same project elsewhere."""
        shutil.copytree(self.root, root)
        return Project(root)

    def start(self, *arguments: str, name: str = "tune") -> Process:
        """`ccwm tune` as a process of its own."""
        return Process(run_search, arguments, root=self.root, log=self.root / f"{name}.log")

    def run(self, *arguments: str, code: int = 0) -> str:
        """What it said, from its start to its end with this exit code."""
        process = self.start(*arguments)
        assert process.end() == code, process.said
        return process.said

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

    def kill_one(self, first: Process, second: Process) -> Process:
        """Kill -9 whichever of two searches has written the first checkpoint; return the other one."""
        first.wait_until(self.checkpoints)
        holder = (self.checkpoints()[0].parents[1] / "holder").read_text()
        victim, survivor = (first, second) if holder == f"process {first.pid}" else (second, first)
        victim.signal(signal.SIGKILL)
        return survivor

    def runs(self, stage: str) -> list[Run]:
        client = MlflowClient(f"sqlite:///{self.root}/mlflow.db")
        experiment = client.get_experiment_by_name("ccwm")
        return list(client.search_runs([experiment.experiment_id], f"tags.stage = '{stage}'")) if experiment else []


def run_search(*arguments: str) -> None:
    """Be `ccwm tune <arguments>`."""
    sys.argv = ["ccwm", "tune", *arguments]
    main()


def make_project(root: Path, **tune: Any) -> Project:
    """A project without data or store."""
    root.mkdir(parents=True)
    shutil.copytree(ROOT / "presets", root / "presets")
    (root / "dvc.yaml").write_text("stages: {train: {deps: []}}\n")
    write_params(root / "params.yaml", **tune)
    return Project(root)
