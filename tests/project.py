"""A tiny project in a directory of its own, its stages as real processes that can be signalled, and its MLflow runs.

Processes come from a fork server that has imported torch, Lightning, MLflow and Optuna once, which saves seconds a
process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import resource
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow import MlflowClient
from mlflow.entities import Run
from ruamel.yaml import YAML

from ccwm.cells import Cell
from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import read_yaml
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve

if TYPE_CHECKING:  # it takes a second to import, which most processes need not
    from dvc.repo import Repo

ROOT = Path(__file__).parents[1]
TASK, VARIANT, SEED = "maze_two_rooms", "ccwm", 0
TRAIN = Cell("train", TASK, VARIANT, SEED)
ARGUMENTS = ("--task", TASK, "--variant", VARIANT, "--seed", str(SEED))
CYCLES, UPDATES = 4, 6
Changes = Mapping[str, Mapping[str, Any]]

STAGES = {
    "collect": ("collect", "--task", TASK, "--seed", str(SEED)),
    "train": ("train", *ARGUMENTS),
    "evaluate": ("evaluate", *ARGUMENTS),
    "rollout-viz": ("rollout_viz", *ARGUMENTS),
    "transfer": ("transfer", *ARGUMENTS),
    "report": ("report",),
}
"""The script and the arguments of every stage of the one cell."""

TINY: dict[str, dict[str, Any]] = {
    "study": {"variants": [VARIANT]},
    "env": {"time_limit": 40},  # 20 steps of 2 frames an episode
    "collect": {"episodes": 2, "heldout": 1},  # training begins at 80 frames
    "model": {"deter": 8, "stoch": 3, "hidden": 8, "reward_units": 8},
    "actor_critic": {"horizon": 3, "starts_per_window": 4, "units": 8},
    # One episode of 40 frames in each of the cycles 1, 2 and 3; cycle 0 learns from the random ones.
    "train": {
        "env_steps": 200,
        "update_every": 40,
        "updates": UPDATES,
        "batch": 2,
        "length": 6,
        "evaluate_every": 80,
        "log_every": 4,
    },
    "rollout": {"context": 3, "horizon": 8},
    "latents": {"episodes": 1, "mapped": 20},
    "transfer": {"rows": [["R"], ["L"]]},
    "trainer": {"accelerator": "cpu"},
    "tracking": {"timeout": 60.0},  # a busy machine is no unreachable store
}
COPIED = ("src", "pipeline", "presets", "claims.yaml", "dvc.yaml", "pyproject.toml", ".gitignore", ".dvcignore")
DVC = (sys.executable, "-m", "dvc")

SERVER = multiprocessing.get_context("forkserver")
# There is one server a test process, so one list for all tests; a module that cannot be imported is left out.
SERVER.set_forkserver_preload(
    [
        *("ccwm.cli.app", "ccwm.tuning.search", "ccwm.tracking.stage", "ccwm.training.publish"),
        *("ccwm.training.collect", "ccwm.report.page"),
        *(f"ccwm.studies.{path.stem}" for path in sorted((ROOT / "src" / "ccwm" / "studies").glob("*.py"))),
        # What MLflow and Optuna import only when they open a database, load a model or draw.
        *("mlflow.pyfunc", "mlflow.store.tracking.sqlalchemy_store", "mlflow.store.model_registry.sqlalchemy_store"),
        *("alembic.command", "rich.progress", "rich.traceback", "sklearn.ensemble"),
    ]
)


def write_params(path: Path, changes: Mapping[str, Mapping[str, Any]] = {}) -> Settings:
    """The smoke preset, made tiny, with a test's own changes; returns them as settings."""
    yaml = YAML()
    content = yaml.load(ROOT / "presets" / "smoke.yaml")
    for layer in (TINY, changes):
        for section, fields in layer.items():
            content[section].update(fields)
    yaml.dump(content, path)
    return load_settings(path)


class Project:
    """A project directory: its settings, its commands and stages, what they wrote, and its MLflow runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.params = root / "params.yaml"
        self.model = root / TRAIN.model
        self.trained = root / TRAIN.results

    def copy(self, root: Path) -> Project:
        """The same project elsewhere, with its DVC cache and git history."""
        shutil.copytree(self.root, root, symlinks=True)
        return Project(root)

    # Settings and files

    def settings(self, variant: str = VARIANT) -> Settings:
        """What a stage reads of params.yaml for a variant."""
        return resolve(load_settings(self.params), variant)

    def set_params(self, changes: Changes) -> None:
        """Set fields of params.yaml, by section and name."""
        content = read_yaml(self.params)
        for section, fields in changes.items():
            content[section].update(fields)
        with self.params.open("w", encoding="utf-8") as file:
            YAML(typ="safe").dump(content, file)

    @contextmanager
    def restored(self, name: str) -> Iterator[Path]:
        """The file as it is now stands there again after the block."""
        path = self.root / name
        before = path.read_bytes()
        try:
            yield path
        finally:
            path.write_bytes(before)

    def files(self, *folders: str) -> dict[str, bytes]:
        """Every visible file in these folders but run.json, which tells of costs: equal runs are equal here."""
        paths = (path.relative_to(self.root) for folder in folders for path in (self.root / folder).rglob("*"))
        return {
            str(path): (self.root / path).read_bytes()
            for path in paths
            if (self.root / path).is_file()
            and path.name != "run.json"
            and not any(part.startswith(".") for part in path.parts[1:])
        }

    # Commands and stages

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment of a command in this project: its own sources, store and cache, and one thread."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "DVC_", "GIT_"))}
        return {
            **ours,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{ours['PATH']}",
            "PYTHONPATH": str(self.root / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "NO_COLOR": "1",
            "DVC_NO_ANALYTICS": "1",
            **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "tester"),
            **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "tester@example.invalid"),
            **changes,
        }

    def open(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Any command, started; its output and errors come as one text."""
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def command(self, *command: str, code: int = 0, **environment: str) -> str:
        """The output of any command, which must end with this exit code."""
        process = self.open(*command, **environment)
        said, _ = process.communicate()
        assert process.returncode == code, f"{' '.join(command)} ended with {process.returncode}\n{said}"
        return said

    def init_dvc(self) -> None:
        """Make it a repository of git and of DVC, with all that is there as its first commit."""
        from dvc.repo import Repo

        self.command("git", "init", "--quiet")
        Repo.init(str(self.root)).close()
        self.commit("A project")

    @contextmanager
    def dvc(self) -> Iterator[Repo]:
        """DVC in this process, in this project: its command takes seconds to start."""
        from dvc.repo import Repo

        with chdir(self.root), Repo() as repo:
            yield repo

    def commit(self, message: str) -> None:
        """All that is there, as a commit."""
        self.command("git", "add", "--all")
        self.command("git", "commit", "--quiet", "--message", message)

    def start(self, script: str, *arguments: str, name: str = "", **environment: str) -> Process:
        """A stage's script as a process of its own; ``name`` tells the logs of several at once apart."""
        given, log = (f"pipeline/{script}.py", *arguments), self.root / f"{name or script}.log"
        return Process(run_script, given, root=self.root, log=log, environment=environment)

    def run(self, script: str, *arguments: str, code: int = 0, **environment: str) -> str:
        """What a stage's script said, from its start to its end with this exit code."""
        process = self.start(script, *arguments, **environment)
        assert process.end() == code, process.said
        return process.said

    # What training leaves behind

    @property
    def work(self) -> Path:
        """The only work directory of the training stage."""
        (found,) = (self.root / ".work" / "train" / TRAIN.key).iterdir()
        return found

    def checkpoints(self) -> list[Path]:
        return sorted((self.root / ".work" / "train" / TRAIN.key).glob("*/checkpoints/*.pt"))

    def updates_logged(self) -> float:
        """The last update whose losses the run has recorded."""
        text = "".join(path.read_text() for path in (self.root / ".work" / "spool").glob("*/journal.jsonl"))
        return max((float(number) for number in re.findall(r'"updates":([\d.]+)', text)), default=0.0)

    def mlflow_runs(self, stage: str) -> list[Run]:
        """The runs of a stage, newest first."""
        uri = f"sqlite:///{self.root}/mlflow.db"
        client = MlflowClient(uri, uri)
        experiment = client.get_experiment_by_name("ccwm")
        return list(client.search_runs([experiment.experiment_id], f"tags.stage = '{stage}'")) if experiment else []


class Process:
    """A function that runs in a process of its own, as a command in ``root`` would; its output goes to ``log``.

    ``environment`` is added to this process's; with FILE_LIMIT no file may grow beyond so many bytes.
    """

    def __init__(
        self,
        target: Callable[..., object],
        arguments: tuple[Any, ...] = (),
        *,
        root: Path,
        log: Path,
        environment: Mapping[str, str] = {},
    ) -> None:
        self._log = log
        call = pickle.dumps((target, arguments))  # its module may import what reads the environment as it is imported
        self._process = SERVER.Process(daemon=True, target=run_command, args=(call, root, log, {**environment}))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def children(self) -> list[int]:
        """The processes that it has started."""
        return children_of(self.pid)

    def wait_until(self, happened: Callable[[], object]) -> None:
        """Return the moment that it happened; the script must still be running."""
        while not happened():
            assert self._process.is_alive(), f"it ended too early: {self.said}"
            time.sleep(0.003)

    def signal(self, signum: signal.Signals) -> int:
        """Send a signal, and return the exit code."""
        os.kill(self.pid, signum)
        return self.end()

    def end(self) -> int:
        """Wait for the end, and return the exit code; a hang is ended by pytest's own limit."""
        self._process.join()
        assert self._process.exitcode is not None, self.said
        return self._process.exitcode

    @property
    def said(self) -> str:
        """Its output and errors so far."""
        return self._log.read_text() if self._log.exists() else ""


def run_command(call: bytes, root: Path, log: Path, environment: dict[str, str]) -> None:
    """In a fresh process: call the pickled function as the main one of a command."""
    os.chdir(root)
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    limit = environment.pop("FILE_LIMIT", None)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    os.environ.update(environment)
    with log.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    target, arguments = pickle.loads(call)  # noqa: S301 - the bytes are those of the process that started it
    target(*arguments)


def run_script(script: str, *arguments: str) -> None:
    """Be `python <script> <arguments>`."""
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie has ended, and nobody has asked for its exit code yet."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_ended(processes: list[int], *, seconds: float = 20.0) -> None:
    """Every one of these processes ends by itself, soon."""
    deadline = time.monotonic() + seconds
    while left := [pid for pid in processes if is_alive(pid)]:
        assert time.monotonic() < deadline, f"processes {left} are left"
        time.sleep(0.02)


def make_project(root: Path, changes: Mapping[str, Mapping[str, Any]] = {}, *, store: Path | None = None) -> Project:
    """A copy of the sources with tiny settings, and with a copy of an MLflow database where one is given."""
    root.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, root / name)
    (root / "evidence").mkdir()
    shutil.copy(ROOT / "evidence" / "README.md", root / "evidence")  # its studies would be copied for every test
    project = Project(root)
    write_params(project.params, changes)
    if store is not None:
        shutil.copy(store, root / "mlflow.db")
    return project
