"""A SAC agent goes through every stage beside a world model's, and is resumed after kill -9 to the bit."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from project import SEED, TASK, Project, make_project

from ccwm.agents.export import load_agent
from ccwm.cells import Cell
from ccwm.report.results import Results
from ccwm.settings.loading import load_settings

SAC = ("--task", TASK, "--variant", "sac", "--seed", str(SEED))
CCWM = ("--task", TASK, "--variant", "ccwm", "--seed", str(SEED))
CHANGES = {
    "env": {"observation": "state"},
    "study": {"variants": ["ccwm", "sac"]},
    "variants": {"sac": {"agent.kind": "sac", "retrace.weight": 0.0, "train.updates": 8, "train.batch": 16}},
    "sac": {"units": 8},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Project:
    """Both agents of one seed, trained from the same random episodes."""
    project = make_project(tmp_path_factory.mktemp("sac") / "project", CHANGES, store=empty_store)
    project.run("collect", "--task", TASK, "--seed", str(SEED))
    project.run("train", *SAC)
    project.run("train", *CCWM)
    return project


def test_it_is_published_without_a_pickle_and_learned_from_the_shared_first_data(trained: Project) -> None:
    cell = Cell("train", TASK, "sac", SEED)
    names = {path.name for path in (trained.root / cell.model).rglob("*") if path.is_file()}
    assert names == {"agent.json", "agent.safetensors"}
    agent = load_agent(trained.root / cell.model)
    assert agent.card.config.agent.kind == "sac"
    metrics = json.loads((trained.root / cell.results / "metrics.json").read_text())
    assert metrics["updates"] == 4 * 8  # the cycle on random episodes and three with an episode each
    assert metrics["env_steps"] == 200
    losses = (trained.root / cell.results / "losses.csv").read_text().splitlines()
    assert losses[0] == "env_steps,updates,critic/loss,actor/loss,temperature/loss,temperature/alpha"
    curve = (trained.root / cell.results / "curve.csv").read_text().splitlines()
    assert curve[0] == "env_steps,updates,return_mean,return_sd,episodes,success_rate"


def test_kill_9_changes_nothing(trained: Project, tmp_path: Path) -> None:
    project = trained.copy(tmp_path / "project")
    cell = Cell("train", TASK, "sac", SEED)
    wanted = project.files(str(cell.model), str(cell.results))
    for path in sorted((project.root / cell.model).rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    process = project.start("train", *SAC)
    process.wait_until(lambda: list((project.root / ".work" / "train" / cell.key).glob("*/checkpoints/000001.pt")))
    assert process.signal(signal.SIGKILL) == -signal.SIGKILL
    project.run("train", *SAC)
    assert project.files(str(cell.model), str(cell.results)) == wanted


def test_all_other_stages_take_it(trained: Project) -> None:
    for stage in ("evaluate", "rollout_viz", "transfer"):
        trained.run(stage, *SAC)
    trained.run("rollout_viz", *CCWM)
    found = Results(trained.root, load_settings(trained.params).study)
    assert [cell.variant for cell in found.cells("evaluate")] == ["sac"]
    assert [cell.variant for cell in found.cells("transfer")] == ["sac"]
    assert [cell.variant for cell in found.cells("rollout-viz")] == ["ccwm"]
    assert found.missing("rollout-viz") == []
    trained.run("report")
    page = (trained.root / "report" / "report.md").read_text()
    assert "sac" in page
    for name in ("prediction", "retracing"):
        table = (trained.root / "report" / "tables" / f"{name}.csv").read_text()
        assert "ccwm" in table
        assert "sac" not in table
