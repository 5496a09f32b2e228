from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ccwm.report.blocks import Heading, Panels, Table
from ccwm.report.evidence import build, scale
from ccwm.report.section import Report

from .results_tree import one, source, study, write_tree


def test_the_projects_own_study_is_no_evidence_and_neither_is_an_empty_one(report: Report, tmp_path: Path) -> None:
    assert build(report) == []
    report.sources.append(source(tmp_path, name="empty"))
    assert build(report) == []


@pytest.mark.slow
def test_a_study_has_its_scale_curves_and_numbers_over_tasks(
    tmp_path: Path, make_report: Callable[..., Report]
) -> None:
    names = {"tasks": ("walker_walk", "cheetah_run"), "seeds": 2}
    write_tree(tmp_path / "kept", study(**names))
    kept = source(tmp_path / "kept", name="kept", **names)
    report = make_report(tmp_path)
    report.sources.append(kept)
    blocks = build(report)
    assert one(blocks, Heading).text == "kept"
    assert "8 of 8 agents are trained" in scale(kept)
    assert "from states, 20,000 environment steps" in scale(kept)
    pictures = [picture.file for block in blocks if isinstance(block, Panels) for picture in block.shown]
    assert pictures == ["kept-learning-walker_walk", "kept-learning-cheetah_run", "kept-profile"]
    table = one(blocks, Table)
    assert table.cells == ()  # they would lead to this study's runs
    assert [row[-1].text for row in table.rows] == ["4", "4"]
    written = pd.read_csv(report.folder / "tables" / "evidence.csv")
    assert written["study"].tolist() == ["kept", "kept"]
    assert written["improvement"][1] == 1.0  # every agent of the second variant is better than any of the first
