"""What a user can mend is refused without a traceback and with exit code 2, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from project import ARGUMENTS, STAGES, TASK, Project


def listing(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.suffix != ".log" and "__pycache__" not in path.parts)


@pytest.fixture
def untouched(collected: Project, tmp_path: Path) -> Project:
    """The collected project without a store: whoever begins a run would make one."""
    project = collected.copy(tmp_path / "project")
    (project.root / "mlflow.db").unlink()
    return project


@pytest.mark.parametrize(
    ("script", "arguments", "changes", "told"),
    [
        ("train", ("--task", "maze_two_room", *ARGUMENTS[2:]), {}, ["'maze_two_rooms'"]),
        ("train", (*ARGUMENTS[:2], "--variant", "cwm", *ARGUMENTS[4:]), {}, ["'cwm'", "'ccwm'"]),
        ("train", ARGUMENTS, {"train": {"batch": 0}}, ["params.yaml", "train.batch", "0"]),
        ("train", (*ARGUMENTS[:4], "--seed", "7"), {}, [f"data/{TASK}/7", "dvc repro collect"]),
        ("collect", STAGES["collect"][1:], {"collect": {"episode": 3}}, ["collect.episode", "episodes"]),
        ("collect", ("--task", TASK, "--seed", "-1"), {}, ["--seed -1", "greater than or equal to 0"]),
        ("collect", ("--task", TASK, "--seed", "4294967296"), {}, ["--seed 4294967296", "less than 2147483648"]),
        ("train", ARGUMENTS, {"trainer": {"precision": "16-mixed"}}, ["trainer.precision", "bf16-mixed"]),
        ("report", (), {"study": {"tasks": ["walker_wlak"]}}, ["'walker_walk'"]),
    ],
)  # fmt: skip
def test_a_stage_refuses_before_it_writes(
    script: str, arguments: tuple[str, ...], changes: Mapping[str, Any], told: list[str], untouched: Project
) -> None:
    untouched.set_params(changes)
    before = listing(untouched.root)
    said = untouched.run(script, *arguments, code=2)
    assert said.startswith("error: ")
    assert "Traceback" not in said
    assert [words for words in told if words not in said] == []
    assert listing(untouched.root) == before


def test_a_torn_manifest_is_not_trained_on(untouched: Project) -> None:
    path = untouched.root / "data" / TASK / "0" / "train" / "manifest.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    before = listing(untouched.root)
    said = untouched.run(*STAGES["train"], code=2)
    assert "manifest.jsonl names 1 of the 2 episodes that were collected" in said
    assert listing(untouched.root) == before


def test_no_gl_is_refused_before_anything_is_written(untouched: Project) -> None:
    before = listing(untouched.root)
    said = untouched.run("train", "--task", "cartpole_balance", *ARGUMENTS[2:], code=2, MUJOCO_GL="nothing")
    assert said.startswith("error: ")
    assert "libegl1" in said
    assert listing(untouched.root) == before
