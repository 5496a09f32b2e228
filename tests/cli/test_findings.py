"""What `ccwm findings` prints of a small project with one study in evidence/."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_helpers import ROOT
from typer.testing import CliRunner

from ccwm.cli.app import app
from ccwm.files import md5
from ccwm.training.history import History, summarise_curve, write_history

CURVES = {"dreamer": (100.0, 110.0, 120.0), "ccwm": (50.0, 61.0, 69.0)}
"""Returns of three seeds, the same at every step of their curves."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The quick settings, nothing run, and three seeds of walker walk kept in evidence/states."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copy(ROOT / "claims.yaml", tmp_path)
    kept = tmp_path / "evidence" / "states"
    kept.mkdir(parents=True)
    shutil.copy(ROOT / "params.yaml", kept)
    for variant, returns in CURVES.items():
        for seed, level in enumerate(returns):
            history = History()
            for steps in (0, 100_000):
                history.add_evaluation(steps, steps, [level], [], {})
            folder = kept / "results" / "train" / "walker_walk" / variant / str(seed)
            spent = {"env_steps": 100_000, "updates": 3900, "episodes": 100}
            write_history(folder, history, {**spent, **summarise_curve(history.curve)})
            sums = {path.relative_to(kept).as_posix(): md5(path) for path in folder.iterdir()}
            (folder / "run.json").write_text(json.dumps({"run_id": "a", "files": sums}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["findings", *arguments])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_the_finding_comes_first_with_its_numbers(project: Path) -> None:
    # Differences of the three pairs: −50, −49, −51; mean −50, s.d. 1, t = 4.303, so ±4.303 / √3 = ±2.48.
    printed = said()
    assert printed.startswith("From states at 100,000 environment steps, 3 seeds: over 1 task ccwm learned more slowly")
    assert "−50.00" in printed
    assert "−52.48 to −47.52" in printed
    assert "disagrees" in printed


def test_all_lists_what_has_not_run(project: Path) -> None:
    assert "hopper_stand" not in said()
    assert "needs ccwm and dreamer on hopper_stand" in said("--all")


def test_a_project_without_results_says_so(project: Path) -> None:
    shutil.rmtree(project / "evidence")
    assert said().startswith("Nothing has been run.")


def test_write_makes_the_page_of_every_study(project: Path) -> None:
    assert said("--write") == "evidence/states/README.md evidence/states/differences.svg evidence/states/curves.svg"
    assert "ccwm learned more slowly than dreamer" in (project / "evidence" / "states" / "README.md").read_text()
