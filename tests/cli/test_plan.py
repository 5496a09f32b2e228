"""`ccwm plan`: presets that extend others, what is done, and numbers as a person says them."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest
from cli_helpers import ROOT, Ccwm

from ccwm.cli.plan import Measured, duration
from ccwm.plan.measure import AgentCost, TaskCost
from ccwm.settings.schema import Settings


def quickly(settings: Settings) -> Measured:
    """As if it had been measured."""
    task, agent = TaskCost((32, 32, 3), 1, 2, 0.001, 0.001), AgentCost(10, 0.01, 0.001, 100.0, (4,))
    study = settings.study
    return Measured(dict.fromkeys(study.tasks, task), dict.fromkeys(study.variants, agent), 1.0)


@pytest.mark.parametrize("name", ["smoke", "maze", "paper-transfer"])
def test_a_preset_is_planned_whether_it_extends_another_or_not(
    ccwm: Ccwm, project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module = importlib.import_module("ccwm.cli.plan")
    monkeypatch.setattr(module, "measure", quickly)
    monkeypatch.setattr(module, "probe", lambda: None)
    monkeypatch.setattr(module, "up_to_date", lambda study, root: set())
    code, out, err = ccwm("plan", name)
    assert (code, err) == (0, "")
    assert "memory: 100.0 MB while training" in out
    assert ("ccwm preset" in out) == (name != "smoke")  # smoke is params.yaml already
    assert [line.split()[0] for line in out.splitlines() if line.startswith(" ")][1:7] == [
        "collect", "train", "evaluate", "rollout-viz", "transfer", "report",
    ]  # fmt: skip


def test_an_unknown_preset_is_guessed(ccwm: Ccwm) -> None:
    code, out, err = ccwm("plan", "smoked")
    assert (code, out) == (2, "")
    assert "Did you mean 'smoke'?" in err


def test_power_is_about_the_results_there_are(ccwm: Ccwm, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "claims.yaml", project)
    code, _, err = ccwm("plan", "--power")
    assert code == 2
    assert "no claim has two seeds yet" in err
    row = {"claim": "efficient", "task": "walker_walk", "study": "this study", "seeds": 3, "sd": 30.0}
    row |= {"found": 81.4, "matters": 20.0, "needed": None}
    monkeypatch.setattr("ccwm.plan.power.seeds_needed", lambda sources, paper: [row])
    code, out, _ = ccwm("plan", "--power")
    assert code == 0
    assert out.splitlines()[1].split() == [
        "efficient",
        "walker_walk",
        "this",
        "study",
        "3",
        "30",
        "81.4",
        "20",
        "over",
        "1,000",
    ]


@pytest.mark.parametrize(
    ("value", "told"), [(14.2, "14 s"), (720, "12 min"), (12600, "3.5 h"), (86400 * 12, "12 days")]
)
def test_durations(value: float, told: str) -> None:
    assert duration(value) == told
