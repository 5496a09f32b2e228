"""What `dvc repro` of the smoke settings leaves, as DVC and MLflow show it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from project import AGENT, STAGES, TASK, VARIANT, Project

pytestmark = [pytest.mark.xdist_group("pipeline"), pytest.mark.timeout(1200)]
STUDIES = ("evaluate", "rollout-viz", "transfer")


@pytest.fixture(scope="module")
def client(finished: Project) -> MlflowClient:
    uri = f"sqlite:///{finished.root / 'mlflow.db'}"
    return MlflowClient(uri, uri)


@pytest.fixture(scope="module")
def runs(client: MlflowClient, finished: Project) -> dict[str, Run]:
    """All runs by their stage, of which each was executed once."""
    experiment = client.get_experiment_by_name(finished.param("tracking.experiment"))
    found = client.search_runs([experiment.experiment_id])
    assert len(found) == len(STAGES)
    return {run.data.tags["stage"]: run for run in found}


def test_nothing_is_left_to_do(finished: Project) -> None:
    assert json.loads(finished.run("dvc", "status", "--json")) == {}
    lines = finished.run("dvc", "repro").splitlines()
    assert {line.split("'")[1] for line in lines if line.endswith("didn't change, skipping")} == STAGES
    assert not [line for line in lines if line.startswith("Running stage")]


def test_metrics_show_a_line_for_each_agent(finished: Project) -> None:
    shown = json.loads(finished.run("dvc", "metrics", "show", "--json"))[""]["data"]
    assert list(shown) == [f"results/evaluate/{TASK}/{VARIANT}/0/metrics.json"]
    assert {"return_mean", "return_low", "return_high", "random_mean", "score"} <= shown.popitem()[1]["data"].keys()


def test_plots_are_drawn(finished: Project) -> None:
    finished.run("dvc", "plots", "show")
    page = (finished.root / "dvc_plots" / "index.html").read_text()
    assert all(title in page for title in ("Greedy return", "Image loss", "Open-loop prediction error"))


def test_the_graph_leads_from_collect_to_the_report(finished: Project) -> None:
    graph = finished.run("dvc", "dag", "--dot")
    assert f'"collect@{TASK}-0" -> "train@{AGENT}"' in graph
    for study in STUDIES:
        assert f'"train@{AGENT}" -> "{study}@{AGENT}"' in graph
        assert f'"{study}@{AGENT}" -> "report"' in graph


def test_a_changed_setting_is_shown(finished: Project) -> None:
    before = finished.param("rollout.shown")
    with finished.restored("params.yaml"):
        finished.set_param("rollout.shown", before + 1)
        shown = json.loads(finished.run("dvc", "params", "diff", "--json"))
    assert shown["params.yaml"]["rollout.shown"] == {"old": before, "new": before + 1, "diff": 1}


def test_every_stage_is_one_finished_run(runs: dict[str, Run]) -> None:
    assert runs.keys() == {stage.partition("@")[0] for stage in STAGES}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert {runs[stage].data.tags["variant"] for stage in ("train", *STUDIES)} == {VARIANT}


def test_studies_nest_under_the_run_that_trained_their_agent(runs: dict[str, Run]) -> None:
    parents = {stage: run.data.tags.get("mlflow.parentRunId") for stage, run in runs.items()}
    trained = runs["train"].info.run_id
    assert parents == {"collect": None, "train": None, "report": None, **dict.fromkeys(STUDIES, trained)}


def test_result_files_name_the_run_that_made_them(finished: Project, runs: dict[str, Run]) -> None:
    for stage in ("train", *STUDIES):
        record = json.loads((finished.root / "results" / stage / TASK / VARIANT / "0" / "run.json").read_text())
        assert record["run_id"] == runs[stage].info.run_id
        assert record["settings_hash"] == runs[stage].data.tags["settings_hash"]


def test_a_run_holds_the_params_that_its_stage_reads(finished: Project, runs: dict[str, Run]) -> None:
    assert runs["evaluate"].data.params["evaluate.episodes"] == str(finished.param("evaluate.episodes"))
    assert not [name for name in runs["evaluate"].data.params if name.startswith("rollout.")]


def test_the_agent_is_registered(client: MlflowClient, runs: dict[str, Run]) -> None:
    (version,) = client.search_model_versions(f"name = 'ccwm-{TASK}-{VARIANT}'")
    assert version.run_id == runs["train"].info.run_id


def test_the_report_is_written_and_work_is_cleared_away(finished: Project) -> None:
    assert finished.param("report.title") in (finished.root / "report" / "index.html").read_text()
    assert not list((finished.root / ".work").rglob("*.ckpt"))
    assert not list((finished.root / ".work" / "spool").rglob("journal.jsonl"))


def test_no_result_for_git_holds_a_path_of_this_machine(finished: Project) -> None:
    for name in finished.run("git", "ls-files", "results", "dvc.lock").splitlines():
        assert str(finished.root) not in (finished.root / name).read_text()


@pytest.mark.slow
def test_an_experiment_reruns_only_what_it_touches_and_is_shown(finished: Project, tmp_path: Path) -> None:
    shutil.copytree(finished.root, tmp_path / "project")
    project = Project(tmp_path / "project")
    episodes = project.param("evaluate.episodes") + 1
    output = project.run("dvc", "exp", "run", "--name", "more", "--set-param", f"evaluate.episodes={episodes}")
    ran = {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}
    assert ran == {f"evaluate@{AGENT}", "report"}
    assert "more" in project.run("dvc", "exp", "show", "--md")
    metrics = json.loads(project.run("dvc", "metrics", "diff", "HEAD", "--json"))
    path = f"results/evaluate/{TASK}/{VARIANT}/0/metrics.json"
    assert metrics.keys() == {path}
    assert metrics[path]["episodes"] == {"old": episodes - 1, "new": episodes, "diff": 1}
