"""Does training survive being killed? Train small, kill -9 at random moments, resume, compare with an undisturbed run.

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

from common import collect, conditions, make_parser, train_cell
from mlflow import MlflowClient
from ruamel.yaml import YAML

from ccwm.cells import PARAMS, WORK, Cell
from ccwm.files import write_json
from ccwm.replay.manifest import MANIFEST, Manifest
from ccwm.settings.loading import load_settings
from ccwm.settings.presets import load_preset
from ccwm.settings.variants import resolve

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
        self.rng, self.cell = rng, Cell("train", TASK, VARIANT, seed)
        self.root = folder / str(seed)
        self.clean = self.root / "clean"
        self.work = self.root / WORK / "train" / self.cell.key
        self.root.mkdir()
        for name in ("pipeline", "src", "dvc.yaml"):
            (self.root / name).symlink_to(ROOT / name)
        content = load_preset("smoke").model_dump(mode="json")
        content["train"].update(LONGER)
        content["study"]["seeds"] = [seed]
        YAML(typ="safe").dump(content, self.root / PARAMS)
        self.settings = resolve(load_settings(self.root / PARAMS), VARIANT)

    def undisturbed(self) -> None:
        """Collect, then train from beginning to end in this process."""
        data = self.root / self.cell.data
        collect(self.settings, self.cell, data, "train", "heldout")
        train_cell(self.settings, self.cell, data=data, root=self.clean)

    def disturbed(self, patience: float) -> Round:
        """Kill and resume until the stage has ended by itself: once at least, then for ``patience`` seconds."""
        moments: dict[str, int] = {}
        lost: set[str] = set()
        clean = [entry.sha256 for entry in Manifest(self.clean / "work" / "replay", create=False).entries]
        deadline = time.monotonic() + patience
        while True:
            stage = SERVER.Process(target=run_stage, args=(self.root, self.cell), daemon=True)
            stage.start()
            if not moments or time.monotonic() < deadline:
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
        return sum(path.read_bytes().count(b"\n") for path in (self.root / WORK / "spool").glob("*/journal.jsonl"))

    def _holds(self, pid: int) -> bool:
        return any(path.read_text() == f"process {pid}" for path in self.work.glob("*/holder"))

    def _moment(self) -> str:
        """What the kill interrupted, as its leftovers show."""
        if any(self.work.glob("*/checkpoints/.*")):
            return "writing a checkpoint"
        if any(self.work.glob("*/replay/.*")):
            return "writing an episode"
        if any((self.root / self.cell.model.parent).glob(".*")):
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
        results = self.root / self.cell.results
        published = [int(row["updates"]) for row in rows_of(results / "losses.csv")]
        expected = json.loads((results / "metrics.json").read_text())["updates"]
        episodes = len(rows_of(results / "episodes.csv"))
        client = MlflowClient(store(self.root))
        experiment = client.get_experiment_by_name(self.settings.tracking.experiment)
        assert experiment is not None
        runs = client.search_runs([experiment.experiment_id])
        points = [
            (point.step, point.value) for run in runs for point in client.get_metric_history(run.info.run_id, "updates")
        ]
        assert self.cell.seed is not None
        return Round(
            seed=self.cell.seed,
            kills=sum(moments.values()),
            moments=moments,
            episodes=episodes,
            episodes_lost=lost + len(rows_of(self.clean / self.cell.results / "episodes.csv")) - episodes,
            updates=expected,
            updates_repeated=len(published) - len(set(published)),
            updates_skipped=len(set(range(1, expected + 1)) - set(published)),
            points_repeated=len(points) - len(set(points)),
            runs=len(runs),
            equal=self._published(self.root) == self._published(self.clean),
        )

    def _published(self, root: Path) -> dict[str, bytes]:
        """All published files but run.json, which records the cost."""
        folders = (self.cell.model, self.cell.results)
        paths = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(root)): path.read_bytes() for path in paths if path.name != self.cell.record.name}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def store(root: Path) -> str:
    return f"sqlite:///{root}/mlflow.db"


def run_stage(root: Path, cell: Cell) -> None:
    """In a fresh process: be `python pipeline/train.py …` in ``root``."""
    os.chdir(root)
    os.environ["MLFLOW_TRACKING_URI"] = store(root)
    with (root / "stage.log").open("a") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.argv = ["pipeline/train.py", "--task", cell.task, "--variant", cell.variant, "--seed", str(cell.seed)]
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
    parser = make_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long stages are killed, undisturbed runs apart")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which it kills")
    given = parser.parse_args()
    facts, began = conditions(load_preset("smoke").trainer.threads), time.monotonic()
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
        about = {"machine": facts, "minutes": round((time.monotonic() - began) / 60, 1), "seed": given.seed}
        write_json(given.json, {**about, **summary, "rounds": [each._asdict() for each in rounds]})
    faults = ("episodes_lost", "updates_repeated", "updates_skipped")
    if any(summary[name] for name in faults) or not summary["final_weights_equal"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
