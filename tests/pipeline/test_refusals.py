"""What a person can mend is refused in a sentence with exit code 2, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from training_project import ENTRY, TASK, Project, write_params

from ccwm.errors import UserError, run_main


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
        ("train", ("--task", "maze_two_room", *ENTRY[2:]), {}, ["unknown task", "Did you mean 'maze_two_rooms'"]),
        ("train", (*ENTRY[:2], "--variant", "cwm", *ENTRY[4:]), {}, ["unknown variant 'cwm'", "Did you mean 'ccwm'"]),
        ("train", ENTRY, {"train": {"batch": 0}}, ["params.yaml", "train.batch", "got 0"]),
        ("train", (*ENTRY[:4], "--seed", "7"), {}, [f"data/{TASK}/7", "dvc repro collect"]),
        ("collect", ("--task", TASK, "--seed", "0"), {"collect": {"episode": 3}}, ["collect.episode", "Did you mean"]),
        ("report", (), {"study": {"tasks": ["walker_wlak"]}}, ["unknown task", "Did you mean 'walker_walk'"]),
    ],
)  # fmt: skip
def test_a_stage_refuses_before_it_writes(
    script: str, arguments: tuple[str, ...], changes: Mapping[str, Any], told: list[str], untouched: Project
) -> None:
    write_params(untouched.root / "params.yaml", changes)
    before = listing(untouched.root)
    stage = untouched.run(script, *arguments)
    assert stage.end() == 2
    assert stage.said.startswith("error: ")
    assert "Traceback" not in stage.said
    for words in told:
        assert words in stage.said
    assert listing(untouched.root) == before


def test_no_gl_is_refused_before_anything_is_written(untouched: Project) -> None:
    before = listing(untouched.root)
    stage = untouched.run("train", "--task", "cartpole_balance", *ENTRY[2:], MUJOCO_GL="nothing")
    assert stage.end() == 2
    assert stage.said.startswith("error: MuJoCo cannot draw on this machine")
    assert "libegl1" in stage.said
    assert listing(untouched.root) == before


def fail_with(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [UserError("mend it"), FileNotFoundError("the model is missing: run train")])
def test_a_refusal_is_told_in_a_sentence(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run_main(lambda: fail_with(error))
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"error: {error}\n"


@pytest.mark.parametrize("error", [ValueError("a bug"), FileNotFoundError(2, "No such file", "x"), SystemExit(143)])
def test_everything_else_passes_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        run_main(lambda: fail_with(error))
    assert caught.value is error
