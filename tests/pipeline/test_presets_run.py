"""Every preset, made small, goes through every stage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from imports import ROOT
from project import make_project

SMALL = {
    "collect.episodes": 1,
    "collect.heldout": 1,
    "model.depth": 2,
    "model.deter": 8,
    "model.stoch": 4,
    "model.hidden": 8,
    "model.reward_units": 8,
    "retrace.reverse_units": 8,
    "actor_critic.units": 8,
    "actor_critic.horizon": 3,
    "actor_critic.starts": 4,
    "truncation.window": 3,
    "truncation.start": 0,
    "train.env_steps": 300,
    "train.updates": 2,
    "train.update_every": 100,
    "train.batch": 2,
    "train.length": 6,
    "train.log_every": 1,
    "env.time_limit": 200,
    "rollout.horizon": 10,
    "states.episodes": 1,
    "states.mapped": 100,
    "evaluate.episodes": 1,
    "transfer.draws": 1,
}
PRESETS = sorted(path.stem for path in (ROOT / "presets").glob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_a_small_version_of_the_preset_runs_whole(preset: str, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    project.run("ccwm", "preset", preset)
    for key, value in SMALL.items():
        project.set_param(key, value)
    project.set_param("study.tasks", project.param("study.tasks")[-1:])
    variant = project.param("study.variants")[-1]
    own = project.param(f"variants.{variant}")
    project.set_param("study.variants", [variant])
    project.set_param(f"variants.{variant}", {key: value for key, value in own.items() if key not in SMALL})
    project.set_param("study.seeds", [0])
    rows = project.param("transfer.rows")
    project.run("dvc", "repro")

    (transfer,) = (project.root / "results" / "transfer").rglob("metrics.json")
    assert list(json.loads(transfer.read_text())["rows"]) == ["+".join(row) for row in rows]
    assert (project.root / "report" / "index.html").is_file()
    assert json.loads(project.run("dvc", "status", "--json")) == {}
