"""What a run of every stage leaves, as DVC and MLflow show it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dvc.repo import Repo
from mlflow import MlflowClient
from mlflow.entities import Run
from project import DVC, STAGES, TASK, TRAIN, VARIANT, Project, make_project

from ccwm.settings.parsing import read_yaml

pytestmark = pytest.mark.timeout(1200)
STUDIES = ("evaluate", "rollout-viz", "transfer")
NAMES = {"report", *(str(TRAIN.of(stage)) for stage in STAGES if stage != "report")}


@pytest.fixture(scope="module")
def client(studied: Project) -> MlflowClient:
    uri = f"sqlite:///{studied.root / 'mlflow.db'}"
    return MlflowClient(uri, uri)


@pytest.fixture(scope="module")
def runs(client: MlflowClient, studied: Project) -> dict[str, Run]:
    """All runs by their stage, of which each was executed once; `study` is the one above the training."""
    experiment = client.get_experiment_by_name("ccwm")
    found = client.search_runs([experiment.experiment_id])
    assert len(found) == len(STAGES) + 1
    return {run.data.tags["stage"]: run for run in found}


@pytest.fixture(scope="module")
def repo(edited: Project) -> Iterator[Repo]:
    with edited.dvc() as found:
        yield found


def test_nothing_is_left_to_do(repo: Repo) -> None:
    assert repo.status() == {}


def test_metrics_show_a_line_for_each_agent(repo: Repo) -> None:
    shown = repo.metrics.show()[""]["data"]
    assert list(shown) == [f"{TRAIN.of('evaluate').results}/metrics.json"]
    assert {"return_mean", "return_low", "return_high", "random_mean", "score"} <= shown.popitem()[1]["data"].keys()


def test_the_graph_leads_from_collect_to_the_report(repo: Repo) -> None:
    edges = {(behind.addressing, before.addressing) for behind, before in repo.index.graph.edges()}
    assert (str(TRAIN), str(TRAIN.of("collect"))) in edges
    for study in STUDIES:
        assert (str(TRAIN.of(study)), str(TRAIN)) in edges
        assert ("report", str(TRAIN.of(study))) in edges


def test_a_changed_setting_is_shown(edited: Project, repo: Repo) -> None:
    before = edited.settings().rollout.shown
    with edited.restored("params.yaml"):
        edited.set_params({"rollout": {"shown": before + 1}})
        shown = repo.params.diff("HEAD")
    assert shown["diff"]["params.yaml"]["rollout.shown"] == {"old": before, "new": before + 1, "diff": 1}


def test_every_stage_is_one_finished_run(runs: dict[str, Run]) -> None:
    assert runs.keys() == {*STAGES, "study"}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert {runs[stage].data.tags["variant"] for stage in ("train", *STUDIES)} == {VARIANT}


def test_runs_nest_from_the_study_over_the_training_to_what_is_about_the_agent(runs: dict[str, Run]) -> None:
    parents = {stage: run.data.tags.get("mlflow.parentRunId") for stage, run in runs.items()}
    above = {"collect": None, "report": None, "study": None, "train": "study", **dict.fromkeys(STUDIES, "train")}
    assert parents == {stage: of and runs[of].info.run_id for stage, of in above.items()}


def test_result_files_name_the_run_that_made_them(studied: Project, runs: dict[str, Run]) -> None:
    for stage in ("train", *STUDIES):
        record = json.loads((studied.root / TRAIN.of(stage).record).read_text())
        assert record["run_id"] == runs[stage].info.run_id
        assert record["settings_hash"] == runs[stage].data.tags["settings_hash"]


def test_a_run_holds_the_params_that_its_stage_reads(studied: Project, runs: dict[str, Run]) -> None:
    assert runs["evaluate"].data.params["evaluate.episodes"] == str(studied.settings().evaluate.episodes)
    assert not [name for name in runs["evaluate"].data.params if name.startswith("rollout.")]


def test_the_agent_is_registered(client: MlflowClient, runs: dict[str, Run]) -> None:
    (version,) = client.search_model_versions(f"name = 'ccwm-{TASK}-{VARIANT}'")
    assert version.run_id == runs["train"].info.run_id


def test_the_report_is_written_and_work_is_cleared_away(studied: Project) -> None:
    assert studied.settings().report.title in (studied.root / "report" / "index.html").read_text()
    assert not list((studied.root / ".work").rglob("*.pt"))
    assert not list((studied.root / ".work" / "spool").rglob("journal.jsonl"))


def test_no_result_for_git_holds_a_path_of_this_machine(studied: Project) -> None:
    for name in studied.command("git", "ls-files", "results", "dvc.lock").splitlines():
        assert str(studied.root) not in (studied.root / name).read_text()


@pytest.mark.slow
def test_plots_are_drawn(studied: Project, tmp_path: Path) -> None:
    project = studied.copy(tmp_path / "project")
    project.command(*DVC, "plots", "show")
    page = (project.root / "dvc_plots" / "index.html").read_text()
    assert [
        title for title in ("Greedy return", "Observation loss", "Open-loop prediction error") if title not in page
    ] == []


@pytest.mark.slow
def test_dvc_repro_runs_the_same_stages_to_the_same_results(
    studied: Project, tmp_path: Path, empty_store: Path
) -> None:
    """What DVC starts are the very commands that the others have run by themselves."""
    project = make_project(tmp_path / "project", store=empty_store)
    project.init_dvc()
    project.command(*DVC, "repro")
    lines = project.command(*DVC, "repro").splitlines()
    assert {line.split("'")[1] for line in lines if line.endswith("didn't change, skipping")} == NAMES
    for folders in (("data", "models"), ("results",)):
        assert project.files(*folders) == studied.files(*folders)
    locks = [read_yaml(each.root / "dvc.lock")["stages"] for each in (project, studied)]
    assert locks[0].keys() == locks[1].keys() == NAMES
    for name in NAMES - {"report"}:
        assert locks[0][name] == locks[1][name], name


@pytest.mark.slow
def test_an_experiment_reruns_only_what_it_touches_and_is_shown(studied: Project, tmp_path: Path) -> None:
    project = studied.copy(tmp_path / "project")
    episodes = project.settings().evaluate.episodes + 1
    output = project.command(*DVC, "exp", "run", "--name", "more", "--set-param", f"evaluate.episodes={episodes}")
    ran = {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}
    assert ran == {str(TRAIN.of("evaluate")), "report"}
    assert "more" in project.command(*DVC, "exp", "show", "--md")
    metrics = json.loads(project.command(*DVC, "metrics", "diff", "HEAD", "--json"))
    path = f"{TRAIN.of('evaluate').results}/metrics.json"
    assert metrics.keys() == {path}
    assert metrics[path]["episodes"] == {"old": episodes - 1, "new": episodes, "diff": 1}
