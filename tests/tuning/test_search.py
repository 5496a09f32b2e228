"""Whole searches as real processes: alone, beside others, killed, resumed, refused."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pandas as pd
import pytest
from tuning_project import KEYS, STUDY, Project, tiny_content, write_params


def test_the_default_and_the_paper_s_values_come_first(searched: Project) -> None:
    trials = searched.trials()
    assert list(trials["trial"]) == [0, 1, 2]
    assert list(trials["anchor"][:2]) == ["default", "paper"]
    assert list(trials[KEYS].iloc[0]) == [0.1, 3, 2]
    assert list(trials[KEYS].iloc[1]) == [0.1, 5, 5]  # the paper's 10 is beyond the space
    assert (trials["truncation.lookback"] <= trials["truncation.window"]).all()
    assert "truncation.window: 10 → 5" in (searched.root / "tune.log").read_text()


def test_it_leaves_the_pipeline_s_outs_alone_and_nothing_of_its_own_work(searched: Project) -> None:
    assert not (searched.root / "data").exists()
    assert not (searched.root / "models").exists()
    assert [path.name for path in (searched.root / "results").iterdir()] == ["tune"]
    folder = searched.root / ".work" / "tune" / STUDY
    assert not list((folder / "work").glob("trial-*"))
    winner = searched.trials().set_index("trial")["first_number"][searched.summary()["winner"]["trial"]]
    assert [path.name for path in (folder / "agents").iterdir()] == [f"trial-{winner}"]
    assert not list((searched.root / ".work" / "spool").glob("*"))


def test_a_finished_study_is_resumed_with_another_trial(searched: Project) -> None:
    two, three = pd.read_csv(searched.root / "two.csv"), searched.trials()
    assert (len(two), len(three)) == (2, 3)
    assert three.iloc[:2][KEYS].equals(two[KEYS])
    assert len(three[KEYS].drop_duplicates()) == 3  # no point is proposed twice


def test_a_study_of_other_settings_is_not_resumed(searched: Project, tmp_path: Path) -> None:
    project = searched.copy(tmp_path / "project")
    write_params(project.root / "params.yaml", seeds=[0, 2])
    journal, mark = project.journal(), (project.results / "study.json").stat().st_mtime_ns
    refused = project.run(code=2)
    assert f"the study '{STUDY}' was begun with other settings" in refused
    assert "tune.seeds was [0, 1], is now [0, 2]" in refused
    assert project.journal() == journal
    assert (project.results / "study.json").stat().st_mtime_ns == mark


def test_processes_share_a_study_and_the_trial_of_a_killed_one_is_retried(project: Project) -> None:
    write_params(project.root / "params.yaml", seeds=[0], trials=2, overrides={"train.updates": 10})
    (project.root / "mlflow.db").unlink()  # the stores of tracking and of the study are both made by both at once
    survivor = project.kill_one(project.start(name="first"), project.start(name="second"))
    assert survivor.end() == 0, survivor.said
    assert "it is retried" in survivor.said

    trials = project.trials()
    assert set(trials["anchor"]) == {"default", "paper"}  # nothing lost, nothing counted twice
    assert set(trials["state"]) == {"complete"}
    retried = trials[trials["trial"] != trials["first_number"]]
    assert len(retried) == 1
    assert sorted(trials["first_number"]) == [0, 1]
    runs = [run for run in project.runs("tune-trial") if run.data.tags["seeds"] == "search"]
    assert len(runs) == 2  # the retry resumes the run of the killed one
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert [run.info.status for run in project.runs("tune")] == ["FINISHED"]


@pytest.mark.parametrize("resumed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_search_that_is_asked_to_end_gives_its_trial_back(project: Project, resumed: bool) -> None:
    search = project.start()
    search.wait_until(project.checkpoints)
    assert search.signal(signal.SIGTERM) == 143
    assert not project.results.exists()
    assert '"interrupted":1' in project.journal()
    if resumed:
        project.run("--trials", "2")
        trials = project.trials().set_index("first_number")
        assert sorted(trials.index) == [0, 1]  # trial 0 was retried, and trial 1 was still to come
        assert trials["anchor"][0] == "default"
        assert trials["trial"][0] == 2


def test_a_grid_ends_when_it_is_exhausted(project: Project) -> None:
    space = {"truncation.signal": {"kind": "choice", "choices": ["value", "q"]}}
    write_params(
        project.root / "params.yaml",
        sampler="grid",
        space=space,
        seeds=[0],
        trials=99,
        measure="truncation_f1",
        keep="none",
    )
    project.run()
    trials = project.trials()
    assert len(trials) == 2  # the default and the paper's values are one of them
    assert set(trials["truncation.signal"]) == {"value", "q"}
    assert trials["value"].between(0, 1).all()
    assert not (project.root / ".work" / "tune" / STUDY / "agents").exists()


def test_an_agent_without_a_world_model_is_searched_as_well(project: Project) -> None:
    content = tiny_content(
        variant="sac",
        space={"sac.learning_rate": {"kind": "float", "low": 1e-4, "high": 1e-3, "log": True}},
        seeds=[0],
        trials=2,
        sampler="random",
    )
    content["env"]["observation"] = "state"
    content["variants"]["sac"] = {"agent.kind": "sac", "retrace.weight": 0.0, "truncation.mode": "none"}
    content["study"]["variants"] = ["sac"]
    (project.root / "params.yaml").write_text(json.dumps(content))
    project.run()
    trials = project.trials()
    assert set(trials["state"]) == {"complete"}
    assert trials["anchor"][0] == "default, paper"
    assert trials["sac.learning_rate"][0] == 3e-4
    assert trials["sac.learning_rate"].between(1e-4, 1e-3).all()
    assert trials["sac.learning_rate"].nunique() == 2
