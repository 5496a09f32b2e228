"""Every preset, made small, goes through every stage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import DVC, ROOT, make_project

from ccwm.settings.parsing import read_yaml

SMALL: dict[str, dict[str, Any]] = {
    "collect": {"episodes": 1, "heldout": 1},
    "model": {"depth": 2, "deter": 8, "stoch": 4, "hidden": 8, "reward_units": 8},
    "retrace": {"reverse_units": 8},
    "actor_critic": {"units": 8, "horizon": 3, "starts_per_window": 4},
    "truncation": {"window": 3, "start": 0},
    "train": {"env_steps": 300, "updates": 2, "update_every": 100, "batch": 2, "length": 6, "log_every": 1},
    "env": {"time_limit": 200},
    "rollout": {"horizon": 10},
    "latents": {"episodes": 1, "mapped": 100},
    "evaluate": {"episodes": 1},
    "transfer": {"draws": 1},
}
KEYS = {f"{section}.{field}" for section, fields in SMALL.items() for field in fields}
PRESETS = sorted(path.stem for path in (ROOT / "presets").glob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_a_small_version_of_the_preset_runs_whole(preset: str, tmp_path: Path, empty_store: Path) -> None:
    project = make_project(tmp_path / "project", store=empty_store)
    project.init_dvc()
    project.command("ccwm", "preset", preset)
    whole = read_yaml(project.params)
    variant = whole["study"]["variants"][-1]
    own = {key: value for key, value in whole["variants"][variant].items() if key not in KEYS}
    study = {"tasks": whole["study"]["tasks"][-1:], "variants": [variant], "seeds": [0]}
    project.set_params({**SMALL, "study": study, "variants": {variant: own}})
    project.command(*DVC, "repro")

    (transfer,) = (project.root / "results" / "transfer").rglob("metrics.json")
    assert list(json.loads(transfer.read_text())["rows"]) == ["+".join(row) for row in whole["transfer"]["rows"]]
    assert (project.root / "report" / "index.html").is_file()
    assert json.loads(project.command(*DVC, "status", "--json")) == {}
