from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from results_tree import write_tree

from ccwm.report import build_report
from ccwm.report.claims import load_claims

# without a browser there is nothing to test in it: `apt-get install chromium` brings one
collect_ignore = [] if shutil.which("chromium") else ["test_report_browser.py"]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of one task, two variants and one seed; read only."""
    return write_tree(tmp_path_factory.mktemp("results"), ["walker_walk"], ["dreamer", "ccwm"], [0])


@pytest.fixture(scope="session")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of that tree; read only."""
    out = tmp_path_factory.mktemp("built") / "report"
    names = {"tasks": ["walker_walk"], "variants": ["dreamer", "ccwm"], "seeds": [0]}
    paper = load_claims(Path(__file__).parents[2] / "claims.yaml")
    build_report(tree, out, **names, title="A <title>", colours={}, paper=paper)
    return out
