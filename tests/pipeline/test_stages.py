"""The stages without a work directory: killed, they leave nothing half-written; run again, they end the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from project import STAGES, TASK, TRAIN, VARIANT, Project

from ccwm.cells import Cell
from ccwm.replay.store import EpisodeStore
from ccwm.studies.components import read_components

pytestmark = pytest.mark.timeout(1200)
OUTPUTS = {"collect": ("data", "results/collect"), "report": ("report",)}


def outputs(project: Project, stage: str) -> dict[str, bytes]:
    """What a stage leaves; the report's list of runs names runs, which never repeat."""
    found = project.files(*OUTPUTS.get(stage, (f"results/{stage}",)))
    return {name: data for name, data in found.items() if not Path(name).name.startswith("runs.")}


def slow(*parameters: str) -> object:
    return pytest.param(*parameters, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("stage", "moment"),
    [
        ("collect", f"data/{TASK}/.0.tmp/train/000000.safetensors"),
        ("rollout-viz", f"results/rollout-viz/{TRAIN.key.parent}/.0.tmp/*"),
        slow("evaluate", f"results/evaluate/{TRAIN.key.parent}/*0*"),
        slow("transfer", ".work/spool/*/journal.jsonl"),
        slow("report", ".report.tmp/*"),
    ],
)
def test_kill_9_leaves_nothing_half_written(stage: str, moment: str, studied: Project, tmp_path: Path) -> None:
    project = studied.copy(tmp_path / "project")
    whole = outputs(studied, stage)
    assert whole
    process = project.start(*STAGES[stage])
    process.wait_until(lambda: list(project.root.glob(moment)))
    assert process.signal(signal.SIGKILL) == -signal.SIGKILL
    assert outputs(project, stage) == whole
    project.run(*STAGES[stage])
    assert outputs(project, stage) == whole
    assert not list(project.root.glob("results/**/.*")), "what the killed one left is gone"


@pytest.mark.parametrize("stage", ["evaluate", slow("collect"), slow("rollout-viz"), slow("transfer"), slow("report")])
def test_sigterm_ends_any_stage_with_its_code_and_no_results(stage: str, studied: Project, tmp_path: Path) -> None:
    """The moment is when its run has begun; what was there before stays as it was."""
    project = studied.copy(tmp_path / "project")
    before = project.files("data", "results", "report")
    spools = set(project.root.glob(".work/spool/*"))
    runs = len(project.mlflow_runs(stage))
    process = project.start(*STAGES[stage])
    process.wait_until(lambda: set(project.root.glob(".work/spool/*/journal.jsonl")) - spools)
    assert process.signal(signal.SIGTERM) == 143
    assert "Traceback" not in process.said
    assert project.files("data", "results", "report") == before
    assert not [path for name in ("data", "results") for path in (project.root / name).rglob(".*.tmp")]
    new = project.mlflow_runs(stage)[: len(project.mlflow_runs(stage)) - runs]
    assert [run.info.status for run in new] in (["KILLED"], [])


def test_states_of_mujoco_need_no_gl(project: Project) -> None:
    cell = Cell("rollout-viz", "cartpole_balance", VARIANT, 0)
    project.set_params({"env": {"observation": "state"}, "study": {"tasks": [cell.task]}})
    place = ("--task", cell.task, "--seed", "0")
    project.run("collect", *place, MUJOCO_GL="nothing")
    (entry, *_) = EpisodeStore(project.root / cell.data / "train", read_only=True).entries
    assert (entry.observation_shape, entry.observation_dtype) == ((5,), "float32")
    for script in ("train", "rollout_viz"):
        project.run(script, *place, "--variant", VARIANT, MUJOCO_GL="nothing")
    found = read_components(project.root / cell.results).component.tolist()
    assert found == ["position[0]", "position[1]", "position[2]", "velocity[0]", "velocity[1]"]
    drawn = {path.name for path in (project.root / cell.results / "pictures").iterdir()}
    assert "components.png" in drawn
    assert not drawn & {"rollout.mp4", "frames.safetensors"}  # what MuJoCo would have to render


def test_a_damaged_store_costs_no_result_and_no_record(project: Project) -> None:
    """It is unreachable like any other: the stage ends well, its records wait, and `sync` tells."""
    store = project.root / "mlflow.db"
    store.write_bytes(os.urandom(50_000))
    project.set_params({"tracking": {"timeout": 2.0}})
    said = project.run(*STAGES["collect"])
    assert f"{store} is damaged" in said
    assert "`ccwm tracking sync` sends them" in said
    assert (project.root / "results" / "collect" / TASK / "0" / "metrics.json").is_file()
    assert list((project.root / ".work" / "spool").rglob("journal.jsonl"))
    assert "is damaged" in project.command("ccwm", "tracking", "sync", code=2)
    store.unlink()
    assert "1 runs sent, 0 kept" in project.command("ccwm", "tracking", "sync")
