"""Whole searches as real processes: alone, beside others, killed, gone on with, refused."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pandas as pd
import pytest
from ruamel.yaml import YAML
from tuning_project import STUDY, Project, make_project, write_params

KEYS = ["truncation.threshold", "truncation.window", "truncation.lookback"]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Project:
    """A project whose search came to its end; read only."""
    project = make_project(tmp_path_factory.mktemp("searched") / "project")
    (project.root / "mlflow.db").write_bytes(empty_store.read_bytes())
    search = project.run()
    assert search.end() == 0, search.said
    return project


def test_the_default_and_the_paper_s_values_come_first(searched: Project) -> None:
    trials = searched.trials()
    assert list(trials["trial"]) == [0, 1, 2]
    assert list(trials["anchor"][:2]) == ["default", "paper"]
    assert list(trials[KEYS].iloc[0]) == [0.1, 3, 2]
    assert list(trials[KEYS].iloc[1]) == [0.1, 5, 5]  # the paper's 10 is beyond the space
    assert (trials["truncation.lookback"] <= trials["truncation.window"]).all()
    assert "truncation.window: 10 → 5" in (searched.root / "tune.log").read_text()


def test_a_value_is_the_mean_over_its_seeds(searched: Project) -> None:
    whole = searched.trials().query("state == 'complete'")
    assert len(whole) >= 2
    assert list(whole["value"]) == pytest.approx(list(whole[["seed 0", "seed 1"]].mean(axis=1)))


def test_the_winner_is_named_on_fresh_seeds_and_both_numbers_are_told(searched: Project) -> None:
    candidates = pd.read_csv(searched.results / "candidates.csv")
    best = candidates.loc[candidates["fresh_mean"].idxmax()]
    summary = searched.summary()
    assert summary["winner"]["trial"] == best["trial"]
    assert summary["winner"]["fresh_mean"] == best["fresh seed 100"]
    assert summary["winner"]["search_mean"] == best["search_mean"]
    assert "default" in set(candidates["anchor"])
    written = YAML(typ="safe").load(searched.results / "best.yaml")
    assert written["truncation"]["window"] == summary["winner"]["truncation.window"]
    drawn = {path.stem for path in searched.results.glob("*.svg")}
    assert {"history", "slice"} <= drawn


def test_runs_nest_three_deep_with_params_metrics_and_state(searched: Project) -> None:
    (search,) = searched.runs("tune")
    trials = {run.data.tags["trial"]: run for run in searched.runs("tune-trial") if run.data.tags["seeds"] == "trial"}
    states = dict(zip(searched.trials()["trial"].astype(str), searched.trials()["state"], strict=True))
    assert search.info.status == "FINISHED"
    assert {number: run.data.tags["state"] for number, run in trials.items()} == states
    for number, run in trials.items():
        assert run.data.tags["mlflow.parentRunId"] == search.info.run_id
        assert run.info.status == "FINISHED"
        assert set(run.data.params) == set(KEYS)
        assert {"objective", "value"} <= set(run.data.metrics) or states[number] == "pruned"
    seeds = [run for run in searched.runs("tune-seed") if run.data.tags["trial"] == "0"]
    assert sorted(run.data.tags["seed"] for run in seeds) == ["0", "1", "100"]
    parents = {run.data.tags["mlflow.parentRunId"] for run in seeds}
    assert trials["0"].info.run_id in parents
    assert len(parents) == 2  # those of the search, and those on fresh seeds
    assert all("evaluation/return_mean" in run.data.metrics for run in seeds)


def test_it_leaves_the_pipeline_s_outs_alone_and_nothing_of_its_own_work(searched: Project) -> None:
    assert not (searched.root / "data").exists()
    assert not (searched.root / "models").exists()
    assert [path.name for path in (searched.root / "results").iterdir()] == ["tune"]
    folder = searched.root / ".work" / "tune" / STUDY
    assert not list((folder / "work").glob("trial-*"))
    winner = searched.trials().set_index("trial")["first_number"][searched.summary()["winner"]["trial"]]
    assert [path.name for path in (folder / "agents").iterdir()] == [f"trial-{winner}"]
    assert not list((searched.root / ".work" / "spool").glob("*"))


def test_a_finished_study_is_gone_on_with_and_one_of_other_settings_is_not(searched: Project, tmp_path: Path) -> None:
    root = tmp_path / "project"
    shutil.copytree(searched.root, root)
    project = Project(root)
    before = project.trials()
    more = project.run("--trials", "4")
    assert more.end() == 0, more.said
    after = project.trials()
    assert len(after) == 4
    assert after.iloc[:3][KEYS].equals(before[KEYS])
    points = after[KEYS].drop_duplicates()
    assert len(points) == 4  # no point is proposed twice

    write_params(root / "params.yaml", seeds=[0, 2])
    journal, mark = project.journal(), (project.results / "study.json").stat().st_mtime_ns
    refused = project.run()
    assert refused.end() == 2
    assert f"the study '{STUDY}' was begun with other settings" in refused.said
    assert "tune.seeds was [0, 1], is now [0, 2]" in refused.said
    assert project.journal() == journal
    assert (project.results / "study.json").stat().st_mtime_ns == mark


def test_processes_share_a_study_and_the_trial_of_a_killed_one_is_begun_again(project: Project) -> None:
    (project.root / "mlflow.db").unlink()  # the stores of tracking and of the study are both made by both at once
    first, second = project.start(name="first"), project.start(name="second")
    first.wait_until(lambda: len(project.training()) >= 2)
    first.kill()
    assert second.end() == 0, second.said
    assert "its process is gone; it is begun again" in second.said

    trials = project.trials()
    assert len(trials) == 3  # nothing lost, nothing counted twice
    assert set(trials["state"]) <= {"complete", "pruned"}
    retried = trials[trials["trial"] != trials["first_number"]]
    assert len(retried) == 1
    assert sorted(trials["first_number"]) == sorted(set(trials["first_number"]))
    assert {"default", "paper"} <= set(trials["anchor"])
    runs = [run for run in project.runs("tune-trial") if run.data.tags["seeds"] == "trial"]
    assert len(runs) == 3  # the retry goes on with the run of the killed one
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert [run.info.status for run in project.runs("tune")] == ["FINISHED"]


def test_a_search_that_is_asked_to_end_gives_its_trial_back(project: Project) -> None:
    search = project.start()
    search.wait_until(project.checkpoints)
    assert search.kill(signal.SIGTERM) == 143
    assert not project.results.exists()
    waiting = [json.loads(line) for line in project.journal().splitlines()]
    assert any(entry.get("system_attrs", {}).get("retry_history") == [0] for entry in waiting)
    resumed = project.run("--trials", "2")
    assert resumed.end() == 0, resumed.said
    assert sorted(project.trials()["first_number"]) == [0, 1]  # trial 0 was begun again, and trial 1 was still to come
    assert project.trials().set_index("first_number")["anchor"][0] == "default"


def test_a_grid_ends_when_it_is_exhausted(project: Project) -> None:
    space = {
        "truncation.threshold": {"kind": "float", "low": 0.1, "high": 0.5},
        "truncation.signal": {"kind": "choice", "choices": ["value", "q"]},
    }
    write_params(
        project.root / "params.yaml",
        sampler="grid",
        grid=2,
        space=space,
        seeds=[0],
        trials=99,
        measure="truncation_f1",
        keep="none",
    )
    search = project.run()
    assert search.end() == 0, search.said
    trials = project.trials()
    assert len(trials) == 4  # 2 × 2, and the default and paper values are one of them
    assert len(trials[list(space)].drop_duplicates()) == 4
    assert trials["value"].between(0, 1).all()
    assert not (project.root / ".work" / "tune" / STUDY / "agents").exists()
