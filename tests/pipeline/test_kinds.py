"""Agents of every kind go through every stage beside a CCWM, and are resumed after kill -9 to the bit."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest
from project import SEED, TASK, Project, make_project

from ccwm.agents.export import load_agent
from ccwm.cells import Cell
from ccwm.report.results import Results
from ccwm.settings.loading import load_settings

UPDATES = {"train.updates": 8, "train.batch": 16}
VARIANTS = {
    "sac": {"agent.kind": "sac", "retrace.weight": 0.0, **UPDATES},
    "model-free": {"agent.kind": "model_free", "truncation.mode": "auto", **UPDATES},
    "playvirtual": {"agent.kind": "playvirtual", **UPDATES},
}
CHANGES = {
    "env": {"observation": "state"},
    "study": {"variants": ["ccwm", *VARIANTS]},
    "variants": VARIANTS,
    "sac": {"units": 8},
}
SOFT = "critic/loss,actor/loss,temperature/loss,temperature/alpha"
MODEL = "model/observation,model/reward,model/kl,model/nats,retrace/loss,retrace/l1,retrace/reward_kl,retrace/w2"
LOGGED = {
    "sac": SOFT,
    "model-free": f"{MODEL},retrace/truncated_share,retrace/threshold,grad_norm/model,{SOFT}",
    "playvirtual": f"model/prediction,retrace/loss,grad_norm/model,{SOFT}",
}
SKILLS = {"model-free": ",retrace_skill_latent,retrace_skill_observation"}


def cell_of(variant: str) -> tuple[str, ...]:
    return ("--task", TASK, "--variant", variant, "--seed", str(SEED))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Project:
    """An agent of each kind and of one seed, trained from the same random episodes."""
    project = make_project(tmp_path_factory.mktemp("kinds") / "project", CHANGES, store=empty_store)
    project.run("collect", "--task", TASK, "--seed", str(SEED))
    for variant in ("ccwm", *VARIANTS):
        project.run("train", *cell_of(variant))
    return project


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_published_without_a_pickle_and_learned_from_the_shared_first_data(
    trained: Project, variant: str
) -> None:
    cell = Cell("train", TASK, variant, SEED)
    names = {path.name for path in (trained.root / cell.model).rglob("*") if path.is_file()}
    assert names == {"agent.json", "agent.safetensors"}
    agent = load_agent(trained.root / cell.model)
    assert agent.card.config.agent.kind == variant.replace("-", "_")
    metrics = json.loads((trained.root / cell.results / "metrics.json").read_text())
    assert metrics["updates"] == 4 * 8  # the cycle on random episodes and three with an episode each
    assert metrics["env_steps"] == 200
    losses = (trained.root / cell.results / "losses.csv").read_text().splitlines()
    assert losses[0] == f"env_steps,updates,{LOGGED[variant]}"
    curve = (trained.root / cell.results / "curve.csv").read_text().splitlines()
    assert curve[0] == f"env_steps,updates,return_mean,return_sd,episodes,success_rate{SKILLS.get(variant, '')}"


@pytest.mark.parametrize("variant", VARIANTS)
def test_kill_9_changes_nothing(trained: Project, tmp_path: Path, variant: str) -> None:
    project = trained.copy(tmp_path / "project")
    cell = Cell("train", TASK, variant, SEED)
    wanted = project.files(str(cell.model), str(cell.results))
    shutil.rmtree(project.root / cell.model)
    process = project.start("train", *cell_of(variant))
    process.wait_until(lambda: list((project.root / ".work" / "train" / cell.key).glob("*/checkpoints/000001.pt")))
    assert process.signal(signal.SIGKILL) == -signal.SIGKILL
    project.run("train", *cell_of(variant))
    assert project.files(str(cell.model), str(cell.results)) == wanted


def test_all_other_stages_take_them(trained: Project) -> None:
    for variant in VARIANTS:
        for stage in ("evaluate", "rollout_viz", "transfer"):
            trained.run(stage, *cell_of(variant))
    trained.run("rollout_viz", *cell_of("ccwm"))
    found = Results(trained.root, load_settings(trained.params).study)
    for stage in ("evaluate", "transfer"):
        assert {cell.variant for cell in found.cells(stage)} == set(VARIANTS)
    assert {cell.variant for cell in found.cells("rollout-viz")} == {"ccwm", "model-free"}  # those with a world model
    assert found.missing("rollout-viz") == []
    trained.run("report")
    page = (trained.root / "report" / "report.md").read_text()
    assert all(variant in page for variant in VARIANTS)
    for name in ("prediction", "retracing"):
        table = (trained.root / "report" / "tables" / f"{name}.csv").read_text()
        assert "ccwm" in table
        assert "model-free" in table
        assert "sac" not in table
        assert "playvirtual" not in table
