"""A table of edits: each makes DVC name just the stages that it touches, and so nothing else is run again."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from dvc.repo import Repo
from project import AGENT, SEED, STAGES, TASK, Project

pytestmark = [pytest.mark.xdist_group("pipeline"), pytest.mark.timeout(1200)]

STUDIES = ("evaluate", "rollout-viz", "transfer")


def entries(*stages: str) -> set[str]:
    """The full names of these stages."""
    found = {name for name in STAGES if name.partition("@")[0] in stages}
    assert len(found) == len(stages)
    return found


def stale(project: Project) -> set[str]:
    """The stages that `dvc status` names."""
    with contextlib.chdir(project.root), Repo() as repo:
        return set(repo.status())


@pytest.mark.parametrize(
    ("key", "value", "touched"),
    [
        ("report.colours", {"ccwm": "#123456"}, ["report"]),
        ("report.title", "Another title", ["report"]),
        ("evaluate.episodes", 99, ["evaluate"]),
        ("rollout.horizon", 9, ["rollout-viz"]),
        ("states.perplexity", 9.0, ["rollout-viz"]),
        ("transfer.draws", 99, ["transfer"]),
        ("truncation.threshold", 0.99, ["train"]),
        ("model.depth", 99, ["train"]),
        ("collect.heldout", 99, ["collect"]),
        ("env.time_limit", 999, ["collect", "train"]),
        ("trainer.threads", 99, ["train", *STUDIES]),
        ("tracking.experiment", "another", []),
        ("variants.ccwm", {"retrace.weight": 0.5}, ["train"]),
        ("variants.dreamer", {"retrace.weight": 0.0, "model.depth": 99}, []),  # its own agents; none is in this study
    ],
)
def test_a_setting(finished: Project, key: str, value: Any, touched: list[str]) -> None:
    with finished.restored("params.yaml"):
        finished.set_param(key, value)
        assert stale(finished) == entries(*touched)


@pytest.mark.parametrize(
    ("file", "touched"),
    [
        ("claims.yaml", ["report"]),
        ("src/ccwm/report/page.py", ["report"]),
        ("src/ccwm/report/templates/style.css", ["report"]),
        ("src/ccwm/studies/returns.py", list(STUDIES)),
        ("src/ccwm/studies/prediction.py", ["rollout-viz"]),
        ("src/ccwm/studies/truncation.py", ["rollout-viz"]),
        ("src/ccwm/training/cycle.py", ["train"]),
        ("src/ccwm/nets/rssm.py", ["train", *STUDIES]),
        ("src/ccwm/tracking/run.py", []),
        ("src/ccwm/config.py", []),
        ("pipeline/evaluate.py", ["evaluate"]),
    ],
)
def test_a_source_file(finished: Project, file: str, touched: list[str]) -> None:
    with finished.restored(file) as path:
        path.write_text(path.read_text() + "\n\n")
        assert stale(finished) == entries(*touched)


def test_another_variant_leaves_the_first_one_alone(finished: Project) -> None:
    with finished.restored("params.yaml"):
        finished.set_param("study.variants", ["ccwm", "dreamer"])
        new = {f"{stage}@{TASK}-dreamer-{SEED}" for stage in ("train", *STUDIES)}
        assert stale(finished) == new | {"report"}


def test_another_seed_needs_data_of_its_own(finished: Project) -> None:
    with finished.restored("params.yaml"):
        finished.set_param("study.seeds", [SEED, SEED + 1])
        new = {f"{stage}@{AGENT[:-1]}{SEED + 1}" for stage in ("train", *STUDIES)}
        assert stale(finished) == new | {f"collect@{TASK}-{SEED + 1}", "report"}
