"""A table of edits: each makes DVC name just the stages that it touches, and so nothing else is run again."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from dvc.repo import Repo
from project import TASK, TRAIN, Project

from ccwm.cells import Cell

pytestmark = [pytest.mark.xdist_group("pipeline"), pytest.mark.timeout(1200)]

STUDIES = ("evaluate", "rollout-viz", "transfer")


def entries(*stages: str) -> set[str]:
    """How DVC names the one cell of these stages."""
    return {str(TRAIN.of(stage)) if stage != "report" else stage for stage in stages}


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
        ("latents.perplexity", 9.0, ["rollout-viz"]),
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
def test_a_setting(studied: Project, key: str, value: Any, touched: list[str]) -> None:
    with studied.restored("params.yaml"):
        section, field = key.split(".")
        studied.set_params({section: {field: value}})
        assert stale(studied) == entries(*touched)


@pytest.mark.parametrize(
    ("file", "touched"),
    [
        ("claims.yaml", ["report"]),
        ("src/ccwm/report/page.py", ["report"]),
        ("src/ccwm/report/templates/style.css", ["report"]),
        ("src/ccwm/studies/returns.py", ["evaluate", "report"]),
        ("src/ccwm/studies/prediction.py", ["rollout-viz", "report"]),
        ("src/ccwm/studies/truncation.py", ["rollout-viz", "report"]),
        ("src/ccwm/training/loop.py", ["train"]),
        ("src/ccwm/nets/rssm.py", ["train", *STUDIES, "report"]),
        ("src/ccwm/tracking/run.py", []),
        ("src/ccwm/settings/agent.py", []),
        ("pipeline/evaluate.py", ["evaluate"]),
    ],
)
def test_a_source_file(studied: Project, file: str, touched: list[str]) -> None:
    with studied.restored(file) as path:
        path.write_text(path.read_text() + "\n\n")
        assert stale(studied) == entries(*touched)


def test_another_variant_leaves_the_first_one_alone(studied: Project) -> None:
    with studied.restored("params.yaml"):
        studied.set_params({"study": {"variants": ["ccwm", "dreamer"]}})
        new = {str(Cell(stage, TASK, "dreamer", 0)) for stage in ("train", *STUDIES)}
        assert stale(studied) == new | {"report"}


def test_another_seed_needs_data_of_its_own(studied: Project) -> None:
    with studied.restored("params.yaml"):
        studied.set_params({"study": {"seeds": [0, 1]}})
        new = {str(Cell("train", TASK, "ccwm", 1).of(stage)) for stage in ("collect", "train", *STUDIES)}
        assert stale(studied) == new | {"report"}
