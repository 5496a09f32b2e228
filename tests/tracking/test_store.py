from __future__ import annotations

import json
import os
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from project import Process
from tracking_helpers import CELL, Server

from ccwm.errors import UserError
from ccwm.settings.schema import Tracking
from ccwm.tracking import stage_run, sync, tracking_uri
from ccwm.tracking.store import COLUMNS, check_store, connect, experiment_id, view_path


def log_a_loss(seed: int) -> None:
    """In a process: a run of this seed."""
    spool = Path(f"spool{seed}")
    with stage_run(replace(CELL, seed=seed), Tracking(timeout=60), settings={}, tags={}, spool=spool) as run:
        run.log_metrics({"loss": float(seed)}, env_steps=1)


def test_default_store_is_at_the_project_root(fresh_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh_project / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(fresh_project / "a" / "b")
    assert tracking_uri() == f"sqlite:///{fresh_project}/mlflow.db"


def test_a_temporary_dvc_experiment_uses_the_outer_projects_store(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = fresh_project / ".dvc" / "tmp" / "exps" / "standalone" / "tmp1"
    inner.mkdir(parents=True)
    (inner / "dvc.yaml").touch()
    monkeypatch.chdir(inner)
    assert tracking_uri() == f"sqlite:///{fresh_project}/mlflow.db"


def test_the_environment_moves_the_store(fresh_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert tracking_uri() == "http://127.0.0.1:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///other.db")
    assert tracking_uri() == f"sqlite:///{fresh_project}/other.db"


@pytest.mark.parametrize("uri", ["./mlruns", "file:///tmp/mlruns"])
def test_a_file_store_is_refused_with_a_hint(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(UserError, match=r"MLFLOW_TRACKING_URI.*sqlite:///PATH"):
        tracking_uri()


def test_outside_a_project_a_hint_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(UserError, match=r"no dvc\.yaml.*MLFLOW_TRACKING_URI"):
        tracking_uri()


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_first_starts_at_once_all_succeed(fresh_project: Path, processes: int) -> None:
    started = [
        Process(log_a_loss, (seed,), root=fresh_project, log=fresh_project / f"{seed}.log") for seed in range(processes)
    ]
    ended = [(process.end(), process.said) for process in started]
    assert ended == [(0, "")] * processes  # neither mlflow nor alembic has anything to say
    found = MlflowClient(tracking_uri()).search_runs(["1"])
    assert sorted(run.data.metrics["loss"] for run in found) == list(range(processes))
    assert {run.info.status for run in found} == {"FINISHED"}
    assert all(run.info.artifact_uri.startswith((fresh_project / "mlartifacts").as_uri()) for run in found)
    assert not (fresh_project / "mlruns").exists()


def test_a_store_is_checked_without_changing_it(project: Path) -> None:
    before = (project / "mlflow.db").read_bytes()
    assert check_store("ccwm") == "mlflow.db holds 0 runs and can be written to"
    assert (project / "mlflow.db").read_bytes() == before
    (project / "mlflow.db").chmod(0o444)
    if not os.access(project / "mlflow.db", os.W_OK):  # root may write all the same
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            check_store("ccwm")


@pytest.mark.slow
def test_a_server_is_checked_by_writing_to_it(real_server: Server) -> None:
    real_server.start()
    assert check_store("ccwm") == f"{real_server.uri} answers and takes what is written"


def test_the_ui_is_told_that_an_experiment_is_about_training_and_which_columns_it_shows(project: Path) -> None:
    client = connect()
    tags = client.get_experiment(experiment_id(client, "new")).tags
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    shared = json.loads(tags["mlflow.sharedViewState.ccwm"])
    assert shared["selectedColumns"] == shared["columnOrder"] == list(COLUMNS)
    older = client.create_experiment("older")
    path = view_path("older")
    assert path == f"/#/experiments/{older}/runs?workflowType=machine_learning&viewStateShareKey=ccwm"
    assert client.get_experiment(older).tags.items() >= tags.items()


def test_a_damaged_store_is_refused_at_once_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "mlflow.db"
    database.write_bytes(os.urandom(100_000))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
    began = time.monotonic()
    for use in (connect, lambda: sync(tmp_path / "spool")):
        with pytest.raises(UserError, match=rf"{database} is damaged.*move it away"):
            use()
    assert time.monotonic() - began < 20
