from __future__ import annotations

from pathlib import Path

from ccwm.report.blocks import Panels
from ccwm.report.losses import SECTION, load
from ccwm.report.section import Report

from .results_tree import one, results


def test_terms_come_in_the_order_of_the_files_and_no_counter_is_one(tree: Path) -> None:
    terms = load(results(tree), "walker_walk")
    assert list(terms) == ["model/observation", "actor/loss", "retrace/loss"]
    assert list(terms["retrace/loss"]) == ["ccwm"]  # Dreamer has none
    assert terms["model/observation"]["dreamer"].mean[0] == 1.0


def test_the_page_has_small_panels_and_one_file_has_all(report: Report) -> None:
    panels = one(SECTION.build(report), Panels)
    assert len(panels.shown) == 3
    assert all("<svg" in picture.svg for picture in panels.shown)
    assert panels.whole.file == "losses-walker_walk"
