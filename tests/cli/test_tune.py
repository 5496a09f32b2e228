"""`ccwm tune` as a person meets it: what is refused, and how a winner gets into params.yaml."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tuning_project import ROOT

from ccwm.cli.tune import tune
from ccwm.errors import run_main
from ccwm.settings.loading import load_settings
from ccwm.settings.variants import resolve
from ccwm.studies.search import Summary

WINNER = {"truncation.threshold": 0.2125, "truncation.window": 7, "truncation.lookback": 3}
Ccwm = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    shutil.copy(ROOT / "presets" / "quick.yaml", tmp_path / "params.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ccwm(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ccwm:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ccwm tune", *arguments])
        with pytest.raises(SystemExit) as end:
            run_main(tune)
        out, err = capsys.readouterr()
        return end.value.code if isinstance(end.value.code, int) else 0, out, err

    return run


def publish(project: Path, **changes: object) -> None:
    folder = project / "results" / "tune" / "retracing"
    folder.mkdir(parents=True)
    content: Summary = {
        "study": "retracing",
        "task": "walker_walk",
        "variant": "ccwm-truncated",
        "overrides": {},
        "measure": "auc",
        "measure_title": "mean height",
        "sampler": "TPE",
        "pruner": "none",
        "seeds": [0],
        "fresh_seeds": [],
        "space": {},
        "trials": {"complete": 5},
        "commits": [],
        "importance": {},
        "winner": {"trial": 4, "point": WINNER},
    }
    (folder / "study.json").write_text(json.dumps({**content, **changes}))


def test_apply_changes_one_line_and_keeps_every_comment(project: Path, ccwm: Ccwm) -> None:
    publish(project)
    before = (project / "params.yaml").read_text().splitlines()
    code, out, _ = ccwm("apply", "--yes")
    assert code == 0
    after = (project / "params.yaml").read_text().splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [
        (
            "  ccwm-truncated: {truncation.mode: adaptive}",
            "  ccwm-truncated: {truncation.mode: adaptive, truncation.threshold: 0.2125, truncation.window: 7, "
            "truncation.lookback: 3}",
        )
    ]
    assert f"+{changed[0][1]}" in out
    settings = load_settings(project / "params.yaml")
    truncation = resolve(settings, "ccwm-truncated").truncation
    assert (truncation.threshold, truncation.window, truncation.lookback) == (0.2125, 7, 3)
    assert resolve(settings, "ccwm").truncation.window == 5  # another variant is left alone
    assert "add ccwm-truncated to study.variants" in " ".join(out.split())
    assert ccwm("apply", "--yes")[1].strip() == "params.yaml has these values already"


def test_apply_writes_nothing_without_a_yes(project: Path, ccwm: Ccwm, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(project)
    before = (project / "params.yaml").read_bytes()
    monkeypatch.setattr("sys.stdin", (project / "no").open("w+"))  # an empty answer
    assert ccwm("apply")[0] == 1
    assert (project / "params.yaml").read_bytes() == before


def test_apply_refuses_what_is_not_there_or_would_not_validate(project: Path, ccwm: Ccwm) -> None:
    code, _, err = ccwm("apply", "--study", "truncated")
    assert code == 2
    assert "results/tune/truncated/study.json" in err
    publish(project, winner=None)
    assert "no winner" in ccwm("apply")[2]
    shutil.rmtree(project / "results")
    publish(project, winner={"trial": 1, "point": {"truncation.window": 16}})
    code, _, err = ccwm("apply", "--yes")
    assert code == 2
    assert "truncation.window (16) must be below train.length (16)" in err
    assert (project / "params.yaml").read_bytes() == (ROOT / "presets" / "quick.yaml").read_bytes()


def test_show_of_an_unknown_study_and_a_bad_option_are_refused(project: Path, ccwm: Ccwm) -> None:
    code, _, err = ccwm("show", "--study", "nothing")
    assert code == 2
    assert "no study is called 'nothing'" in err
    code, _, err = ccwm("--trials", "0")
    assert code == 2
    assert "tune.trials: must be a whole number of at least 1" in err
    assert not (project / "results").exists()
