"""A small project, and the `ccwm` command in it: exit code, stdout and stderr."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from cli_helpers import ROOT, Answer, Ccwm

from ccwm.cli.app import main


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with presets and, as params.yaml, the smoke settings; commands run there."""
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    shutil.copytree(ROOT / "pipeline", tmp_path / "pipeline")
    shutil.copy(ROOT / "presets" / "smoke.yaml", tmp_path / "params.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ccwm(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ccwm:
    """Run the command within this process: exit code, stdout and stderr, without colours, which some CIs force."""
    for variable in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["ccwm", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        out, err = (re.sub(r"\x1b\[[0-9;]*m", "", text) for text in capsys.readouterr())
        return code if isinstance(code, int) else 0, out, err

    return run
