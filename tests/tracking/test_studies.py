from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow import MlflowClient
from tracking_helpers import CELL, Outage, Server, StartRun

from ccwm.cells import Cell
from ccwm.report.summaries import Summary
from ccwm.settings.schema import Tracking
from ccwm.tracking import sync
from ccwm.tracking.studies import log_studies

SPOOL = Path("spool")


def summary(*runs: str) -> Summary:
    points = {0: {"study/return_mean": 1.0}, 10: {"study/return_mean": 3.0}}
    return Summary("ccwm · walker_walk · 3 seeds", {"stage": "study", "variant": "ccwm"}, points, list(runs))


def test_a_study_is_a_run_above_its_trainings_and_below_none(
    project: Path, start_run: StartRun, client: Callable[[], MlflowClient]
) -> None:
    with start_run(CELL) as training:
        training.log_metrics({"loss": 1.0}, env_steps=0)
    with start_run(Cell("report")) as report:
        log_studies(report, Tracking(), [summary(training.run_id, "of another store")], spool=SPOOL)
    store = client()
    experiment = store.get_experiment_by_name("ccwm").experiment_id
    (study,) = store.search_runs([experiment], "tags.stage = 'study'")
    assert study.info.run_name == "ccwm · walker_walk · 3 seeds"
    assert study.info.status == "FINISHED"
    assert "mlflow.parentRunId" not in study.data.tags  # a chart leaves out what is folded up
    assert study.data.tags["report"] == report.run_id
    assert store.get_run(training.run_id).data.tags["mlflow.parentRunId"] == study.info.run_id
    history = store.get_metric_history(study.info.run_id, "study/return_mean")
    assert [(point.step, point.value) for point in history] == [(0, 1.0), (10, 3.0)]
    assert not list(SPOOL.glob("*"))


def test_an_unreachable_store_gets_its_studies_later(
    server: Server | Outage,
    start_run: StartRun,
    client: Callable[[], MlflowClient],
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.kill()
    with start_run(Cell("report"), timeout=1.0) as report:
        log_studies(report, Tracking(), [summary(), summary()], spool=SPOOL)
    assert len(list(SPOOL.glob("*/spool.json"))) == 3
    assert capsys.readouterr().err.count("the runs of studies are kept in") == 1
    server.start()
    assert len(sync(SPOOL).sent) == 3
    store = client()
    experiment = store.get_experiment_by_name("ccwm").experiment_id
    found = store.search_runs([experiment], "tags.stage = 'study'")
    assert [run.data.tags["report"] for run in found] == [report.run_id] * 2
