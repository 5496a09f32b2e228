"""The MLflow runs that a search leaves."""

from __future__ import annotations

from tuning_project import KEYS, Project


def test_runs_nest_three_deep_with_params_metrics_and_state(searched: Project) -> None:
    (search,) = searched.runs("tune")
    trials = {run.data.tags["trial"]: run for run in searched.runs("tune-trial") if run.data.tags["seeds"] == "search"}
    states = dict(zip(searched.trials()["trial"].astype(str), searched.trials()["state"], strict=True))
    assert search.info.status == "FINISHED"
    assert search.data.tags["state"] == "complete"
    assert {"value", "best", "winner/search", "winner/fresh"} <= set(search.data.metrics)
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
    assert len(parents) == 2  # that of the search, and that on fresh seeds
    assert all("evaluation/return_mean" in run.data.metrics for run in seeds)
    assert {run.data.params["train.updates"] for run in seeds} == {"2"}
