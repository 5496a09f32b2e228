"""A table of edits: each makes DVC name just the stages that it touches, and so nothing else is run again.

One edit of each kind is fast; test_dvc_yaml.py compares the params and deps of all stages with the code.
"""

from __future__ import annotations

from typing import Any

import pytest
from project import TASK, TRAIN, Project

from ccwm.cells import Cell

pytestmark = pytest.mark.timeout(1200)

STUDIES = ("evaluate", "rollout-viz", "transfer")


def slow(*parameters: object) -> object:
    return pytest.param(*parameters, marks=pytest.mark.slow)


def entries(*stages: str) -> set[str]:
    """How DVC names the one cell of these stages."""
    return {str(TRAIN.of(stage)) if stage != "report" else stage for stage in stages}


def stale(project: Project) -> set[str]:
    """The stages that `dvc status` names."""
    with project.dvc() as repo:
        return set(repo.status())


@pytest.mark.parametrize(
    ("key", "value", "touched"),
    [
        ("report.colours", {"ccwm": "#123456"}, ["report"]),
        slow("report.title", "Another title", ["report"]),
        ("evaluate.episodes", 99, ["evaluate"]),
        slow("rollout.horizon", 9, ["rollout-viz"]),
        slow("latents.perplexity", 9.0, ["rollout-viz"]),
        slow("transfer.draws", 99, ["transfer", "report"]),
        slow("truncation.threshold", 0.99, ["train"]),
        ("model.depth", 99, ["train"]),
        ("collect.heldout", 99, ["collect"]),
        slow("env.time_limit", 999, ["collect", "train", "report"]),
        slow("trainer.threads", 99, ["train", *STUDIES]),
        ("tracking.experiment", "another", []),
        ("variants.ccwm", {"retrace.weight": 0.5}, ["train"]),
        ("variants.dreamer", {"retrace.weight": 0.0, "model.depth": 99}, []),  # its own agents; none is in this study
    ],
)
def test_a_setting(edited: Project, key: str, value: Any, touched: list[str]) -> None:
    with edited.restored("params.yaml"):
        section, field = key.split(".")
        edited.set_params({section: {field: value}})
        assert stale(edited) == entries(*touched)


@pytest.mark.parametrize(
    ("file", "touched"),
    [
        ("claims.yaml", ["report"]),
        ("evidence/README.md", ["report"]),
        slow("src/ccwm/report/page.py", ["report"]),
        slow("src/ccwm/report/templates/style.css", ["report"]),
        ("src/ccwm/studies/returns.py", ["evaluate", "report"]),
        slow("src/ccwm/studies/prediction.py", ["rollout-viz", "report"]),
        slow("src/ccwm/studies/truncation.py", ["rollout-viz", "report"]),
        ("src/ccwm/training/loop.py", ["train"]),
        slow("src/ccwm/nets/rssm.py", ["train", *STUDIES, "report"]),
        ("src/ccwm/tracking/run.py", []),
        ("src/ccwm/settings/agent.py", []),
        slow("pipeline/evaluate.py", ["evaluate"]),
    ],
)
def test_a_source_file(edited: Project, file: str, touched: list[str]) -> None:
    with edited.restored(file) as path:
        path.write_text(path.read_text() + "\n\n")
        assert stale(edited) == entries(*touched)


def test_another_variant_leaves_the_first_one_alone(edited: Project) -> None:
    with edited.restored("params.yaml"):
        edited.set_params({"study": {"variants": ["ccwm", "dreamer"]}})
        new = {str(Cell(stage, TASK, "dreamer", 0)) for stage in ("train", *STUDIES)}
        assert stale(edited) == new | {"report"}


def test_another_seed_needs_data_of_its_own(edited: Project) -> None:
    with edited.restored("params.yaml"):
        edited.set_params({"study": {"seeds": [0, 1]}})
        new = {str(Cell("train", TASK, "ccwm", 1).of(stage)) for stage in ("collect", "train", *STUDIES)}
        assert stale(edited) == new | {"report"}
