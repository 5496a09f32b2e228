"""Does training survive being killed? Train small, kill -9 at random moments, go on, compare with an undisturbed run.

    python benchmarks/soak.py --minutes 10 --json benchmarks/soak.json

Rounds follow each other until training has been disturbed for that long, each with a seed of its own: an undisturbed
run first, then the real stage (`pipeline/train.py`) as a process, killed and started again until it has published. The
processes come from a fork server that has imported torch once, so that kills hit training, not imports. It prints:

- kills survived, and in which part of the work they came;
- episodes lost: whole episodes that were on disk at a kill and are not what the undisturbed run has there;
- updates repeated or skipped: in the published losses, and among the points that MLflow holds of the one run;
- whether the final weights, the best ones, the metrics and all curves equal the undisturbed run's, byte for byte.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import random
import runpy
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from mlflow import MlflowClient
from ruamel.yaml import YAML

from ccwm.files import write_json
from ccwm.machine import machine
from ccwm.replay.manifest import MANIFEST, Manifest
from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import read_yaml
from ccwm.settings.variants import resolve
from ccwm.training.collect import collect_random
from ccwm.training.loop import Learning, train
from ccwm.training.publish import publish_agent, publish_history, summarise

ROOT = Path(__file__).parents[1]
TASK, VARIANT = "maze_two_rooms", "ccwm"
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["ccwm.tracking.stage", "ccwm.training.publish", "ccwm.training.collect", "mlflow.pyfunc"]
)
MOST_REPORTS = 40
LONGER = {"env_steps": 1200, "updates": 10, "log_every": 1, "evaluate_every": 600}
"""The smoke settings with more cycles, so that a run is long enough to be killed often, and every update is logged."""


class Round(NamedTuple):
    """One agent, trained undisturbed and with kills."""

    seed: int
    kills: int
    moments: dict[str, int]
    episodes: int
    episodes_lost: int
    updates: int
    updates_repeated: int
    updates_skipped: int
    points_repeated: int
    runs: int
    equal: bool


class Soak:
    """A project of its own in which one seed is trained twice."""

    def __init__(self, folder: Path, seed: int, rng: random.Random) -> None:
        self.seed, self.rng = seed, rng
        self.root = folder / str(seed)
        self.root.mkdir()
        for name in ("pipeline", "dvc.yaml"):
            (self.root / name).symlink_to(ROOT / name)
        content = read_yaml(ROOT / "presets" / "smoke.yaml")
        content["train"].update(LONGER)
        content["study"]["seeds"] = [seed]
        YAML(typ="safe").dump(content, self.root / "params.yaml")
        self.learning = Learning(*(getattr(self._settings(), section) for section in Learning._fields))
        self.key = Path(TASK, VARIANT, str(seed))
        self.data = self.root / "data" / TASK / str(seed)
        self.work = self.root / ".work" / "train" / self.key

    def _settings(self) -> Any:
        return resolve(load_settings(self.root / "params.yaml"), VARIANT)

    def undisturbed(self) -> None:
        """Collect, then train from beginning to end in this process."""
        settings = self._settings()
        parts = {"train": settings.collect.episodes, "heldout": settings.collect.heldout}
        collect_random(
            TASK,
            self.data,
            parts=parts,
            env=settings.env,
            render=settings.render,
            seed=self.seed,
            advance=lambda: None,
        )
        clean = self.root / "clean"
        trained = train(
            self.learning,
            task=TASK,
            seed=self.seed,
            data=self.data / "train",
            work=clean / "work",
            log=lambda *_: None,
            label=f"seed {self.seed}, undisturbed",
        )
        publish_agent(clean / "models" / self.key, trained, self.learning, task=TASK, variant=VARIANT, seed=self.seed)
        metrics = summarise(trained.history, trained.module.counters)
        publish_history(clean / "results" / "train" / self.key, trained.history, metrics)

    def disturbed(self, patience: float) -> Round:
        """Kill and go on until the stage has ended by itself; after ``patience`` seconds it is left in peace."""
        moments: dict[str, int] = {}
        lost: set[str] = set()
        clean = [entry.sha256 for entry in Manifest(self.root / "clean" / "work" / "replay", create=False).entries]
        deadline = time.monotonic() + patience
        while True:
            stage = SERVER.Process(target=run_stage, args=(self.root, self.seed), daemon=True)
            stage.start()
            if time.monotonic() < deadline:
                self._wait_and_kill(stage)
            stage.join()
            if stage.exitcode == 0:
                break
            if stage.exitcode != -signal.SIGKILL:
                raise SystemExit(f"the stage failed: {(self.root / 'stage.log').read_text()[-2000:]}")
            moment = self._moment()
            moments[moment] = moments.get(moment, 0) + 1
            lost |= self._differing(clean)
        return self._round(moments, len(lost))

    def _wait_and_kill(self, stage: Any) -> None:
        """Wait until the stage has reported a random number of updates and episodes, then some milliseconds more.

        Reports, not seconds: so kills fall all over a run on a fast machine and on a busy one.
        """
        before, more = self._reported(), int(self.rng.uniform(0, 1) ** 2 * MOST_REPORTS)
        while stage.is_alive() and not (self._holds(stage.pid) and self._reported() >= before + more):
            time.sleep(0.002)
        stage.join(self.rng.uniform(0, 0.1))
        stage.kill()

    def _reported(self) -> int:
        """Lines of the run's journal, one for each update and each episode."""
        return sum(path.read_bytes().count(b"\n") for path in self.root.glob(".work/spool/*/journal.jsonl"))

    def _holds(self, pid: int) -> bool:
        return any(path.read_text() == f"process {pid}" for path in self.work.glob("*/holder"))

    def _moment(self) -> str:
        """What the kill interrupted, told from what it left."""
        if any(self.work.glob("*/checkpoints/.*")):
            return "writing a checkpoint"
        if any(self.work.glob("*/replay/.*")):
            return "writing an episode"
        if any((self.root / "models" / self.key.parent).glob(".*")):
            return "publishing"
        return "learning or acting" if any(self.work.glob("*/checkpoints/0*.pt")) else "before the first checkpoint"

    def _differing(self, clean: list[str]) -> set[str]:
        """Episodes that the manifest promised at the kill and that are damaged or not the undisturbed run's."""
        found: set[str] = set()
        for path in self.work.glob(f"*/replay/{MANIFEST}"):
            for index, entry in enumerate(Manifest(path.parent, create=False).entries):
                if clean[index] != entry.sha256 or not (path.parent / entry.name).is_file():
                    found.add(entry.name)
        return found

    def _round(self, moments: dict[str, int], lost: int) -> Round:
        results = self.root / "results" / "train" / self.key
        with (results / "losses.csv").open() as file:
            published = [int(row["updates"]) for row in csv.DictReader(file)]
        expected = json.loads((results / "metrics.json").read_text())["updates"]
        with (results / "episodes.csv").open() as file:
            episodes = len(list(csv.DictReader(file)))
        client = MlflowClient(store(self.root))
        experiment = client.get_experiment_by_name("ccwm")
        assert experiment is not None
        runs = client.search_runs([experiment.experiment_id])
        points = [
            (point.step, point.value) for run in runs for point in client.get_metric_history(run.info.run_id, "updates")
        ]
        return Round(
            seed=self.seed,
            kills=sum(moments.values()),
            moments=moments,
            episodes=episodes,
            episodes_lost=lost + self._fewer_episodes(episodes),
            updates=expected,
            updates_repeated=len(published) - len(set(published)),
            updates_skipped=len(set(range(1, expected + 1)) - set(published)),
            points_repeated=len(points) - len(set(points)),
            runs=len(runs),
            equal=self._files(self.root) == self._files(self.root / "clean"),
        )

    def _fewer_episodes(self, episodes: int) -> int:
        with (self.root / "clean" / "results" / "train" / self.key / "episodes.csv").open() as file:
            return len(list(csv.DictReader(file))) - episodes

    def _files(self, root: Path) -> dict[str, bytes]:
        """All that was published, but run.json, which tells of costs."""
        paths = [path for name in ("models", "results/train") for path in (root / name).rglob("*") if path.is_file()]
        return {str(path.relative_to(root)): path.read_bytes() for path in paths if path.name != "run.json"}


def store(root: Path) -> str:
    return f"sqlite:///{root}/mlflow.db"


def run_stage(root: Path, seed: int) -> None:
    """In a fresh process: be `python pipeline/train.py …` in ``root``."""
    os.chdir(root)
    os.environ["MLFLOW_TRACKING_URI"] = store(root)
    with (root / "stage.log").open("a") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.argv = ["pipeline/train.py", "--task", TASK, "--variant", VARIANT, "--seed", str(seed)]
    runpy.run_path(sys.argv[0], run_name="__main__")


def soak(minutes: float, seed: int) -> list[Round]:
    """Rounds until training has been disturbed for this long; the last one is finished."""
    rng, left = random.Random(seed), 60 * minutes
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as folder:
        while left > 0:
            project = Soak(Path(folder), len(rounds), rng)
            project.undisturbed()
            began = time.monotonic()
            rounds.append(project.disturbed(left))
            left -= time.monotonic() - began
            print(json.dumps(rounds[-1]._asdict()), flush=True)
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="how long stages are killed, undisturbed runs apart")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which it kills")
    parser.add_argument("--json", type=Path, help="write the record to this file")
    given = parser.parse_args()
    began = time.monotonic()
    rounds = soak(given.minutes, given.seed)
    moments = {name for each in rounds for name in each.moments}
    summary = {
        "kills_survived": sum(each.kills for each in rounds),
        "moments": {name: sum(each.moments.get(name, 0) for each in rounds) for name in sorted(moments)},
        "episodes": sum(each.episodes for each in rounds),
        "episodes_lost": sum(each.episodes_lost for each in rounds),
        "updates": sum(each.updates for each in rounds),
        "updates_repeated": sum(each.updates_repeated + each.points_repeated for each in rounds),
        "updates_skipped": sum(each.updates_skipped for each in rounds),
        "mlflow_runs_of_an_agent": max(each.runs for each in rounds),
        "final_weights_equal": all(each.equal for each in rounds),
    }
    for name, value in summary.items():
        print(f"{name.replace('_', ' ')}: {'yes' if value is True else value}")
    if given.json:
        facts = {"machine": machine(1), "minutes": round((time.monotonic() - began) / 60, 1), "seed": given.seed}
        write_json(given.json, {**facts, **summary, "rounds": [each._asdict() for each in rounds]})
    faults = ("episodes_lost", "updates_repeated", "updates_skipped")
    if any(summary[name] for name in faults) or not summary["final_weights_equal"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
