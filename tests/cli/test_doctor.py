"""The doctor's findings: each problem with a hint, and the exit code."""

from __future__ import annotations

import importlib
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from cli_helpers import ROOT
from rich.console import Console
from ruamel.yaml import YAML

from ccwm.cli.doctor import Finding
from ccwm.errors import UserError
from ccwm.machine import cores
from ccwm.settings.agent import Trainer
from ccwm.settings.loading import load_settings
from ccwm.settings.schema import Settings

doctor = importlib.import_module("ccwm.cli.doctor")  # `ccwm.cli.app` has a function of that name


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the lock file and the smoke settings, which DVC does not know."""
    for name in ("requirements.lock", "pyproject.toml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "presets" / "smoke.yaml", tmp_path / "params.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


def trained_with(trainer: Trainer) -> Settings:
    return load_settings(Path("params.yaml")).model_copy(update={"trainer": trainer})


def test_installed_packages_are_those_of_the_lock(project: Path) -> None:
    found = doctor.examined(doctor.packages)
    assert not found.problem, found.message
    assert f"torch {version('torch')}" in found.message


def test_another_or_a_missing_version_is_a_problem_with_a_hint(project: Path) -> None:
    lock = project / "requirements.lock"
    lock.write_text(
        lock.read_text().replace(f"\nnumpy=={version('numpy')}", "\nnumpy==0.0.1") + "no-such-package==1.0\n"
    )
    found = doctor.examined(doctor.packages)
    assert found.problem
    assert f"numpy {version('numpy')} (lock: 0.0.1)" in found.message
    assert "no-such-package missing (lock: 1.0)" in found.message
    assert found.hint == "make install"


def test_gl_is_a_problem_only_where_it_is_needed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> None:
        raise UserError("MuJoCo cannot render on this machine", hint="install libegl1")

    monkeypatch.setattr(doctor, "probe", nothing)
    found = doctor.examined(doctor.rendering, load_settings(Path("params.yaml")))
    assert not found.problem
    yaml = YAML()
    content = yaml.load(project / "params.yaml")
    content["study"]["tasks"] = ["cheetah_run"]
    yaml.dump(content, project / "params.yaml")
    found = doctor.examined(doctor.rendering, load_settings(Path("params.yaml")))
    assert found.problem
    assert "libegl1" in found.hint
    content["env"]["observation"] = "state"
    yaml.dump(content, project / "params.yaml")
    assert not doctor.examined(doctor.rendering, load_settings(Path("params.yaml"))).problem


def test_a_device_that_is_not_there_and_a_precision_that_is(project: Path) -> None:
    found = doctor.examined(doctor.device, trained_with(Trainer(accelerator="cpu")))
    assert not found.problem
    assert "precisions 32-true, 64-true, bf16-mixed" in found.message
    found = doctor.examined(
        doctor.device, trained_with(Trainer(accelerator="cpu", precision="16-mixed"))
    )  # which Lightning would replace
    assert found.problem
    assert found.hint == "trainer.precision: 32-true"
    import torch

    if not torch.cuda.is_available():
        found = doctor.examined(doctor.device, trained_with(Trainer(accelerator="gpu")))
        assert found.problem
        assert "trainer.accelerator: auto" in found.hint


def test_more_threads_than_cores_are_told(project: Path) -> None:
    found = doctor.examined(doctor.threads, trained_with(Trainer(threads=cores())))
    assert found.hint == ""
    found = doctor.examined(doctor.threads, trained_with(Trainer(threads=cores() + 1)))
    assert f"trainer.threads: {cores()}" in found.hint


def test_a_full_disk_is_told_before_anything_is_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(Path("params.yaml"))
    found = doctor.examined(doctor.disk, settings)
    assert not found.problem
    usage = type(shutil.disk_usage("."))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1))
    found = doctor.examined(doctor.disk, settings)
    assert found.problem
    assert "study.seeds" in found.hint


def test_the_store_is_written_to_and_one_that_cannot_be_is_a_problem(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(Path("params.yaml"))
    found = doctor.examined(doctor.tracking, settings)
    assert "the first run makes mlflow.db" in found.message
    assert not (project / "mlflow.db").exists()
    (project / "mlflow.db").write_text("this is no database")
    found = doctor.examined(doctor.tracking, settings)
    assert found.problem
    assert "file is not a database" in found.message
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")  # nobody listens on port 9
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    found = doctor.examined(doctor.tracking, settings)
    assert found.problem


def test_the_screen_names_hints_and_the_exit_code_tells(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "params.yaml").unlink()
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(typer.Exit) as end:
        doctor.doctor()
    assert end.value.exit_code == 1
    out = capsys.readouterr().out
    assert "params.yaml is missing" in out
    assert "→ run at the project" in out
    assert "1 to fix" in out


def test_notes_do_not_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.show({"a": Finding("fine"), "b": Finding("slow", hint="do this")}, Console())
    assert not doctor.show({"a": Finding("broken", problem=True, hint="fix it")}, Console())
    assert "→ fix it" in capsys.readouterr().out
