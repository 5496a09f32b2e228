from __future__ import annotations

from pathlib import Path

import pytest
from results_tree import study, write_tree

from ccwm.report.claims import Paper, load_claims
from ccwm.report.page import build_report
from ccwm.report.results import Results
from ccwm.report.section import Report
from ccwm.settings import schema

COLOURS = {"dreamer": "#111111", "ccwm": "#222222"}


@pytest.fixture(scope="session")
def paper() -> Paper:
    return load_claims(Path(__file__).parents[2] / "claims.yaml")


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the results of one task, two variants and one seed; read only."""
    return write_tree(tmp_path_factory.mktemp("project"), study())


@pytest.fixture(scope="session")
def built(tree: Path, paper: Paper, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of that tree; read only."""
    out = tmp_path_factory.mktemp("built") / "report"
    build_report(tree, out, study=study(), look=schema.Report(title="A <title>"), paper=paper)
    return out


@pytest.fixture
def report(tree: Path, tmp_path: Path, paper: Paper) -> Report:
    """What a section builds from: that tree, and an empty folder."""
    return make_report(tree, tmp_path, paper)


def make_report(root: Path, folder: Path, paper: Paper | None = None, **names) -> Report:
    for name in ("figures", "tables"):
        (folder / name).mkdir(exist_ok=True)
    return Report(Results(root, study(**names)), folder, COLOURS, 0.5, paper)
