"""The stages without a work directory: killed, they leave nothing half-written; run again, they end the same."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from training_project import ENTRY, KEY, TASK, Project

COLLECT = ("collect", "--task", TASK, "--seed", "0")
STAGES = {
    "collect": COLLECT,
    "evaluate": ("evaluate", *ENTRY),
    "rollout-viz": ("rollout_viz", *ENTRY),
    "transfer": ("transfer", *ENTRY),
    "report": ("report",),
}
OUTPUTS = {"collect": ("data", "results/collect"), "report": ("report",)}


def outputs(project: Project, stage: str) -> dict[str, bytes]:
    return project.files(*OUTPUTS.get(stage, (f"results/{stage}",)))


@pytest.fixture(scope="module")
def studied(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which every stage has run without interruption; read only."""
    project = finished.copy(tmp_path_factory.mktemp("studied") / "project")
    for name, call in STAGES.items():
        stage = project.run(*call)
        assert stage.end() == 0, stage.said
        assert outputs(project, name)
    return project


@pytest.mark.parametrize(
    ("stage", "moment"),
    [
        ("collect", f"data/{TASK}/.0.tmp/train/000000.safetensors"),
        ("evaluate", f"results/evaluate/{KEY.parent}/*0*"),
        ("rollout-viz", f"results/rollout-viz/{KEY.parent}/*0*"),
        ("transfer", ".work/spool/*/journal.jsonl"),
        ("report", "*report.tmp/figures/*"),
    ],
)
def test_kill_9_leaves_nothing_half_written(
    stage: str, moment: str, finished: Project, studied: Project, tmp_path: Path
) -> None:
    project = (studied if stage == "report" else finished).copy(tmp_path / "project")
    before = outputs(project, stage)
    whole = outputs(studied, stage)
    process = project.start(*STAGES[stage])
    process.wait_until(lambda: list(project.root.glob(moment)))
    assert process.signal(signal.SIGKILL) == -signal.SIGKILL
    assert outputs(project, stage) in (before, whole)
    again = project.run(*STAGES[stage])
    assert again.end() == 0, again.said
    assert outputs(project, stage) == whole
    assert not list(project.root.glob("results/**/.*")), "what the killed one left is gone"


@pytest.mark.parametrize("stage", [*STAGES])
def test_sigterm_ends_any_stage_with_its_code_and_no_results(stage: str, finished: Project, tmp_path: Path) -> None:
    """The moment is when its run has begun; what was there before stays as it was."""
    project = finished.copy(tmp_path / "project")
    before = project.files("data", "results", "report")
    spools = set(project.root.glob(".work/spool/*"))
    process = project.start(*STAGES[stage])
    process.wait_until(lambda: set(project.root.glob(".work/spool/*/journal.jsonl")) - spools)
    assert process.signal(signal.SIGTERM) == 143
    assert "nothing was published: run the same command again" in process.said
    assert project.files("data", "results", "report") == before
    assert not [path for name in ("data", "results") for path in (project.root / name).rglob(".*")]
    assert [run.info.status for run in project.mlflow_runs(stage)] in (["KILLED"], [])
