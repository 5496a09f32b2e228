"""A kept study: whose settings it has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fleet_project import FleetProject

from ccwm.errors import UserError
from ccwm.fleet.run import Request, run_fleet
from ccwm.fleet.study import lay_out_study

KEPT = Path("evidence/smoke")
NOTHING = "train@no-such-cell"


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    return subprocess.run(["git", *identity, *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def older(project: FleetProject, monkeypatch: pytest.MonkeyPatch) -> str:
    """A commit whose smoke preset has no ``train.actors``; the preset has it again since."""
    monkeypatch.chdir(project.root)
    preset = project.root / "presets" / "smoke.yaml"
    now = preset.read_text()
    preset.write_text(now.replace("  actors: 0\n", ""))
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "--message", "Older")
    commit = git(project.root, "rev-parse", "HEAD").strip()
    preset.write_text(now)
    git(project.root, "commit", "--quiet", "--all", "--message", "Newer")
    return commit


def test_a_study_of_older_code_has_that_code_s_settings(project: FleetProject, older: str) -> None:
    lay_out_study(project.root, KEPT, preset="smoke", commit=older)
    assert "actors" not in (project.root / KEPT / "params.yaml").read_text()
    lay_out_study(project.root, Path("evidence/now"), preset="smoke", commit=None)
    assert "actors: 0" in (project.root / "evidence/now/params.yaml").read_text()


def test_a_key_that_came_later_does_not_shut_a_study_out(project: FleetProject, older: str) -> None:
    assert run_fleet(project.root, Request(KEPT, "smoke", older, pattern=NOTHING)).todo == []


def test_a_preset_that_changed_leaves_a_kept_study_alone(project: FleetProject, older: str) -> None:
    lay_out_study(project.root, KEPT, preset="smoke", commit=older)
    before = (project.root / KEPT / "params.yaml").read_bytes()
    with pytest.raises(UserError, match=r"evidence/smoke/params\.yaml"):
        lay_out_study(project.root, KEPT, preset="smoke", commit=None)
    assert (project.root / KEPT / "params.yaml").read_bytes() == before
