from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from mlflow import MlflowClient
from tracking_helpers import CELL, Outage, Server, StartRun

from ccwm.tracking import sync
from ccwm.tracking.outbox import Outbox
from ccwm.tracking.spool import Spool

Client = Callable[[], MlflowClient]
Store = Server | Outage
CARD = '{"observation_shape": [8], "observation_dtype": "float32", "action_size": 2}'


def steps(client: MlflowClient, run_id: str) -> list[int]:
    return [point.step for point in client.get_metric_history(run_id, "loss")]


def count(client: MlflowClient, experiment: str) -> int:
    found = client.get_experiment_by_name(experiment)
    assert found is not None
    return len(client.search_runs([found.experiment_id]))


def test_a_server_unreachable_from_start_to_end_gets_it_all_later(
    server: Store,
    start_run: StartRun,
    client: Client,
    fresh_project: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.kill()
    start_run = partial(start_run, experiment="unreachable")
    start = time.perf_counter()
    with start_run(timeout=1.0) as train:
        train.log_metrics({"loss": 1.0}, env_steps=1)
    assert time.perf_counter() - start < 5
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "Connection refused" in said[1]
    assert f"{fresh_project}/spool/{train.run_id}" in said[1]
    assert "ccwm tracking sync" in said[1]
    with start_run(timeout=0.1, run_id=train.run_id) as resumed:
        resumed.log_metrics({"loss": 0.5}, env_steps=2)
    (reason,) = sync(fresh_project).kept.values()
    assert "Connection refused" in reason

    server.start()
    study = replace(CELL, stage="evaluate")
    with start_run(study, parent_run_id=train.run_id, spool=Path("evaluate")) as child:
        pass  # it comes to the store before its parent does
    (sent,) = sync(fresh_project).sent
    assert steps(client(), sent) == [1, 2]
    assert client().get_run(sent).info.status == "FINISHED"
    assert client().get_run(child.run_id).data.tags["mlflow.parentRunId"] == sent
    assert count(client(), "unreachable") == 2
    assert sync(fresh_project).sent == []
    with start_run(run_id=train.run_id) as again:  # the id from before the store answered
        assert again.run_id == sent


def test_a_server_killed_in_the_middle_loses_nothing_and_gets_nothing_twice(
    server: Store, start_run: StartRun, client: Client, fresh_project: Path
) -> None:
    (fresh_project / "curves").mkdir()
    (fresh_project / "curves" / "curve.csv").write_text("1,2\n")
    exported = fresh_project / "agent"
    exported.mkdir()
    (exported / "agent.json").write_text(CARD)  # it is only sent here, never loaded
    server.start()
    with start_run(timeout=60.0, experiment="killed") as run:
        for step in range(300):
            run.log_metrics({"loss": 1.0}, env_steps=step)
        time.sleep(1.5)  # let some of it arrive
        server.kill()
        start = time.perf_counter()
        for step in range(300, 2000):
            run.log_metrics({"loss": 1.0}, env_steps=step)
        run.log_artifact(fresh_project / "curves")
        run.log_agent(exported)
        assert time.perf_counter() - start < 2
        server.start()
        run.log_metrics({"loss": 1.0}, env_steps=2000)
    assert steps(client(), run.run_id) == list(range(2001))
    assert {file.path for file in client().list_artifacts(run.run_id)} == {"curves", "settings.json"}
    assert count(client(), "killed") == 1
    (agent,) = client().search_model_versions("name = 'ccwm-walker_walk-ccwm'")
    assert agent.run_id == run.run_id


def test_a_crash_between_sending_and_acknowledging_leaves_no_duplicate(
    project: Path, start_run: StartRun, client: Client
) -> None:
    with suppress(KeyboardInterrupt), start_run() as run:
        for step in range(5):
            run.log_metrics({"loss": 1.0, "not a number": float("nan")}, env_steps=step)
        raise KeyboardInterrupt
    (directory,) = (project / "spool").iterdir()
    spool = Spool(directory)
    spool.identify(acknowledged=0, mlflow_run_id=None)  # as if not even the run's creation had been noted
    Outbox(spool).drain()
    assert spool.unsent == 0
    assert steps(client(), run.run_id) == [0, 1, 2, 3, 4]
    assert len(client().get_metric_history(run.run_id, "not a number")) == 5
    assert len(client().search_runs(["1"])) == 1


def test_sync_leaves_a_live_run_alone(project: Path, start_run: StartRun) -> None:
    with start_run(run_id="live"):
        report = sync(project)
        assert (report.sent, list(report.kept)) == ([], [project / "spool" / "live"])


def test_a_store_that_never_answers_costs_a_bounded_time(
    fresh_project: Path, start_run: StartRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent.getsockname()[1]}")
        start = time.perf_counter()
        with start_run(timeout=0.5) as run:
            run.log_metrics({"loss": 1.0}, env_steps=1)
        assert time.perf_counter() - start < 4.5  # far less than the call that is still hanging
    assert "no answer within 0.5 s" in capsys.readouterr().err


def test_a_store_that_fails_at_the_same_place_again_and_again_costs_a_bounded_time(
    project: Path, start_run: StartRun, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = project / "agent"
    exported.mkdir()
    (exported / "agent.json").write_text(CARD)
    (project / "mlartifacts").mkdir()
    (project / "mlartifacts" / "models").touch()  # where MLflow wants a directory
    with start_run(timeout=3.0) as run:
        run.log_agent(exported)
        start = time.perf_counter()
    assert 3 <= time.perf_counter() - start < 15
    assert "ccwm tracking sync" in capsys.readouterr().err
    for thread in threading.enumerate():
        if thread.name == "ccwm-outbox":
            thread.join(10)  # an attempt that is under way still holds the spool
    (project / "mlartifacts" / "models").unlink()
    assert sync(project).sent == [run.run_id]
