"""`ccwm verify` on a whole project: it runs the commit again in a clone, and its exit code tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import TASK, TRAIN, VARIANT, Project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
METRICS = f"results/evaluate/{TASK}/{VARIANT}/0/metrics.json"


@pytest.fixture
def recorded(studied: Project, tmp_path: Path) -> Project:
    """A copy of the finished project that says who made its results."""
    project = studied.copy(tmp_path / "project")
    project.command("ccwm", "verify", "--record")
    project.commit("Who made it")
    return project


def verify(project: Project, *arguments: str) -> tuple[int, str]:
    process = project.open("ccwm", "verify", *arguments, COLUMNS="200")
    said, _ = process.communicate()
    return process.returncode, said


def edit_metric(project: Project) -> None:
    path = project.root / METRICS
    metrics = json.loads(path.read_text())
    path.write_text(json.dumps({**metrics, "return_mean": metrics["return_mean"] + 1e-9}, indent=2) + "\n")
    project.commit("A number that no run gave")


def test_a_changed_metric_is_caught_while_other_stages_agree(recorded: Project) -> None:
    before = recorded.command("git", "status", "--porcelain")
    edit_metric(recorded)
    code, told = verify(recorded, "evaluate", "transfer")
    assert code == 1, told
    wrong = [line for line in told.splitlines() if " differs " in line]
    assert len(wrong) == 2
    assert all(METRICS in line for line in wrong)
    assert "the committed file is not the one that dvc.lock names" in wrong[0]
    assert "return_mean" in wrong[1]
    for file in (
        f"results/evaluate/{TASK}/{VARIANT}/0/returns.csv",
        f"results/transfer/{TASK}/{VARIANT}/0/metrics.json",
    ):
        assert [line for line in told.splitlines() if file in line and " equal" in line], told
    assert recorded.command("git", "status", "--porcelain") == before  # it worked elsewhere


def test_what_cannot_be_verified_is_refused(recorded: Project) -> None:
    code, told = verify(recorded, "evaluat")
    assert code == 2
    assert "no stage 'evaluat' in dvc.lock. Did you mean 'evaluate'?" in told
    code, told = verify(recorded, "--preset", "smoke", "evaluate")
    assert code == 2
    assert "not both" in told


def test_the_whole_pipeline_agrees_in_every_bit(recorded: Project) -> None:
    code, told = verify(recorded)
    assert code == 0, told
    assert "report" in told  # one directory, compared by its hash
    assert "not compared" not in told
    assert "within" not in told


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        (
            "src/ccwm/training/loop.py",
            'named_seed("weights", seed)',
            'named_seed("weights", seed + 1)',
            "loop.py",
        ),
        ("params.yaml", "weight: 1.0", "weight: 0.5", "retrace"),
    ],
    ids=["seed", "loss weight"],
)
def test_a_change_that_was_not_run_is_caught(recorded: Project, file: str, old: str, new: str, stale: str) -> None:
    path = recorded.root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    recorded.commit("Changed, and not run")
    code, told = verify(recorded, "train")
    assert code == 1
    assert [line for line in told.splitlines() if "sources and settings" in line and stale in line], told
    for name in (f"models/{TASK}/{VARIANT}/0", "losses.csv", "curve.csv"):
        assert [line for line in told.splitlines() if f"{TRAIN}" in line and name in line and "differs" in line]


def test_a_presets_record_is_compared_and_a_second_run_too(recorded: Project) -> None:
    code, told = verify(recorded, "--preset", "smoke")
    assert code == 2
    assert "smoke.json is missing: run `ccwm verify --preset smoke --record`" in told
    code, told = verify(recorded, "--preset", "smoke", "--record")
    assert code == 0, told
    recorded.commit("A record of smoke")
    code, told = verify(recorded, "--preset", "smoke", "--twice")
    assert code == 0, told
    assert "(again)" in told
    assert " differs" not in told
