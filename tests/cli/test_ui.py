"""`ccwm ui`: on this machine only, with the address of our view."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from cli_helpers import Ccwm


def test_the_ui_explains_its_port(ccwm: Ccwm) -> None:
    code, out, _ = ccwm("ui", "--help")
    assert code == 0
    assert "--port" in out
    assert ccwm("ui", "--port", "0")[0] == 2


def test_the_ui_binds_to_this_machine_only_and_names_our_view(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("ccwm.cli.ui")
    started: list[str] = []
    monkeypatch.setattr(module, "become", lambda *arguments: started.extend(arguments))
    monkeypatch.setattr("ccwm.tracking.store.view_path", lambda experiment: f"/#/{experiment}")
    monkeypatch.setattr("ccwm.tracking.store.tracking_uri", lambda: "sqlite:////somewhere/mlflow.db")
    module.ui(5001)
    assert started[started.index("--host") + 1] == "127.0.0.1"
    assert "http://127.0.0.1:5001/#/ccwm" in capsys.readouterr().out
